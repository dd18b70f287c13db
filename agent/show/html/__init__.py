"""The report as one self-contained HTML file: no script, no network, one template."""

import logging

# On a host whose home cannot be written, importing matplotlib would print advice on its font cache.
logging.getLogger("matplotlib").setLevel(logging.ERROR)
