"""From a server's log to the cause: class, causing line, remedies."""

from moeagent.tools.diagnosis.catalogue import Catalogue, load_catalogue
from moeagent.tools.diagnosis.diagnose import diagnose, diagnose_log
from moeagent.tools.diagnosis.remote import diagnose_on_host
from moeagent.tools.diagnosis.scanner import Scanner
from moeagent.tools.diagnosis.selection import accept_model_answer, select_from_log, select_lines

__all__ = [
    "Catalogue",
    "Scanner",
    "accept_model_answer",
    "diagnose",
    "diagnose_log",
    "diagnose_on_host",
    "load_catalogue",
    "select_from_log",
    "select_lines",
]
