"""From a server's log to the cause: class, causing line, remedies."""

from moeagent.tools.diagnosis.catalogue import Catalogue, load_catalogue
from moeagent.tools.diagnosis.diagnose import diagnose, diagnose_log

__all__ = ["Catalogue", "diagnose", "diagnose_log", "load_catalogue"]
