"""What the columns of the findings store mean, and questions to ask of it: docs/schema.md is made of this."""

TABLES = {
    "runs": (
        "One row a run, with the scope in which its findings hold.",
        {
            "id": "name of the run's folder",
            "created_at": "ISO time with offset",
            "goal": "max-throughput, min-latency, max-goodput or min-cost",
            "workload": "dataset, input/output tokens and ladder, as runs are compared by it",
            "gpu": "name of the GPUs",
            "gpu_count": "how many",
            "engine": "sglang, vllm or llamacpp",
            "engine_version": "as the engine says; null where it does not",
            "model": "name of the model",
            "simulated": "1 where the figures come from the simulated machine",
            "status": "running, finished, stopped, failed or awaiting approval",
            "best": "the best configuration as JSON; null until the run ends",
            "alike": "runs that are alike share it: machine, engine, model, workload and baseline",
        },
    ),
    "hypotheses": (
        "One row a hypothesis, with its last verdict.",
        {
            "run": "runs.id",
            "id": "H1, H2, ... in the order of the run",
            "statement": "what was claimed",
            "reason": "why it was expected",
            "category": "which limit it moves",
            "source": "playbook, model, user or search",
            "knobs": "names of all flags and variables that it touches, separated by spaces",
            "change": "the change against its parent configuration, as JSON",
            "verdict": "improved, neutral, regressed, blocked, invalid, no-op, inconclusive; null while open",
            "verdict_reason": "why",
            "effect": "relative change of the goal's score: 0.05 is +5 %",
            "low": "lower end of its interval",
            "high": "upper end of its interval",
        },
    ),
    "launches": (
        "One row a start of a server.",
        {
            "run": "runs.id",
            "id": "L1, L2, ... in the order of the run",
            "hypothesis": "hypotheses.id; null for a baseline launch",
            "config": "flags, variables and install as JSON",
            "outcome": "completed, died-starting, hung-starting, died-serving, refused or stopped",
            "ready_after_s": "seconds from start to ready; null where it never was",
        },
    ),
    "measurements": (
        "One row a rung: one launch at one concurrency.",
        {
            "run": "runs.id",
            "launch": "launches.id",
            "concurrency": "streams at once",
            "completed": "requests with a whole answer",
            "failed": "requests without",
            "output_tok_s": "output tokens per second over the rung; null where nothing was measured",
            "ttft_p50_ms": "time to the first token",
            "ttft_p99_ms": "the same, 99th percentile",
            "tpot_p50_ms": "time per output token after the first",
            "tpot_p99_ms": "the same, 99th percentile",
            "invalid": "why the figures may not be used; empty when they may",
            "rung": "the rung whole, as JSON",
            "energy_j": "energy of all GPUs over the rung; null where power was not sampled",
            "power_w": "mean power of all GPUs together; null where it was not sampled",
        },
    ),
    "diagnoses": (
        "One row a failed launch.",
        {
            "run": "runs.id",
            "launch": "launches.id",
            "class": "class of the failure, such as oom.kv_pool.startup",
            "confidence": "0 to 1",
            "stage": "load, kv_pool, graph_capture, warmup, serving, client or host",
            "root_line": "the line of the log that names the cause",
            "line_no": "its number, from 1",
            "explanation": "in words",
        },
    ),
    "reviews": (
        "The last judgement of a reviewer; what was rejected is not used by later runs.",
        {
            "run": "runs.id",
            "about": "hypotheses.id or launches.id",
            "judgement": "confirmed or rejected",
            "reason": "in the reviewer's words",
            "at": "ISO time with offset",
        },
    ),
}
"""By table: what a row is, and what each column means."""

QUESTIONS = {
    "What is known of expert parallelism on this GPU?": """
select h.run, h.id, h.verdict, h.effect, h.verdict_reason
from hypotheses_fts f
join hypotheses h on h.rowid = f.rowid
join runs r on r.id = h.run
where hypotheses_fts match 'expert parallelism' and r.gpu like '%RTX PRO 6000%'
order by f.rank limit 20""",
    "Which configurations were the fastest at 256 streams?": """
select m.run, m.launch, m.output_tok_s, m.ttft_p99_ms, r.gpu, r.model, l.config
from measurements m
join runs r on r.id = m.run
join launches l on l.run = m.run and l.id = m.launch
where m.concurrency = 256 and m.invalid = '' and m.failed = 0
order by m.output_tok_s desc limit 10""",
    "What did one run measure, rung by rung?": """
select m.launch, l.hypothesis, m.concurrency, m.output_tok_s, m.tpot_p99_ms, m.energy_j
from measurements m
join launches l on l.run = m.run and l.id = m.launch
where m.run = (select id from runs order by created_at desc limit 1)
order by m.launch, m.concurrency""",
    "How often did servers fail on each GPU, and of what?": """
select r.gpu, d.class, count(*) as launches, max(d.confidence) as surest
from diagnoses d
join runs r on r.id = d.run
group by r.gpu, d.class
order by launches desc limit 50""",
    "What became of a flag wherever it was tried?": """
select r.created_at, h.run, h.id, h.change, h.verdict, h.effect, h.low, h.high
from hypotheses_fts f
join hypotheses h on h.rowid = f.rowid
join runs r on r.id = h.run
where hypotheses_fts match 'knobs: "chunked-prefill-size"'
order by r.created_at desc limit 50""",
    "What did reviewers reject?": """
select v.run, v.about, v.reason, h.statement
from reviews v
left join hypotheses h on h.run = v.run and h.id = v.about
where v.judgement = 'rejected'
order by v.at desc limit 50""",
}
"""Each answered in plain SQL, in well under 100 ms over a million measurements (tests/bench)."""
