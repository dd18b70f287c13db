"""The load generator: standard library only, Python 3.9 or newer, so that it runs on any GPU host.

It is started as `python3 loadgen.pyz < job.json`; `bundle.py` makes the archive of this folder. The process
that reads the job only supervises (`crew`): every connection lives in a forked worker. How it stays out of
the way of what it measures: connections are opened, and requests serialised, before the clock starts; a read
is stamped, kept and looked at only for the end of the body; parsing waits until the last token; the garbage
collector is off; slots are spread over processes when one core is not enough.
"""
