"""What a host, an engine and a model are, asked by read-only commands and parsed by pure functions.

`commands.survey_commands` says what to run, `survey.run_survey` runs it, `survey.parse_survey` reads the
outputs; between the two the outputs can be recorded, and parsed again without the host.
"""
