"""What a host, an engine and a model are, asked by read-only commands and parsed by pure functions.

`survey_commands` says what to run, `run_survey` runs it, `parse_survey` reads the outputs; between the two
the outputs can be recorded, and parsed again without the host.
"""

from moeagent.tools.survey.commands import survey_commands
from moeagent.tools.survey.findings import Finding, as_error
from moeagent.tools.survey.survey import Survey, parse_survey, run_survey

__all__ = ["Finding", "Survey", "as_error", "parse_survey", "run_survey", "survey_commands"]
