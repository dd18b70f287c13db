"""The report as one self-contained HTML file: no script, no network, one template."""
