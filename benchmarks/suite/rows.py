"""The rows of the benchmark, a registry: a program, its size, the systems in turn, and the goal.

A new row is one entry here; a new program is one module of programs/.
"""

from dataclasses import dataclass, field
from typing import Any

from suite.programs.least_squares import CALLS_OF_A_TASK

IN_PROCESS = ("eager", "function", "numpy", "torch", "tf", "tf-function", "jax")
TEAM = ("remote-keys", "remote-tls", "remote-nginx")  #: As a team runs it: with keys, TLS, and a proxy.
REST = ("rest", "rest-open", "rest-run", "fastapi-numpy")
REMOTE = ("remote", "remote-function", "fastapi", "tf-remote", "tf-remote-function", "floor")


@dataclass(frozen=True)
class Goal:
    """A ratio that a system of ours must not exceed, to the best of some peers in the same run.

    Attributes:
        system: Ours.
        ratio: Its time, or memory, over the best peer's.
        peers: Systems.
        memory: Whether peak memory is compared, not time.
    """

    system: str
    ratio: float
    peers: tuple[str, ...]
    memory: bool = False


@dataclass(frozen=True)
class Row:
    """A program of a size, measured with some systems in turn.

    Attributes:
        label: What it is, in a table.
        program: A module of programs/.
        size: Arguments of the module's `inputs`.
        systems: Names of SYSTEMS.
        goals: What is to be reached.
        unit: ms, µs (an op) or GB/s.
        per: Ops of a call, if the unit is that of an op; bytes of a call, if it is GB/s.
        threads: Cores and BLAS threads of a process.
        callers: That call at the same time; the time is that of a call: all calls' time over their number.
        in_threads: Whether each caller is a thread; else a connection of one thread, which costs less than the servers.
        memory: Whether peak memory is measured too.
        compared: Whether a comparison of two commits measures it.
    """

    label: str
    program: str
    size: dict[str, Any]
    systems: tuple[str, ...] = IN_PROCESS
    goals: tuple[Goal, ...] = ()
    unit: str = "ms"
    per: int = 1
    threads: int = 1
    callers: int = 1
    in_threads: bool = True
    memory: bool = False
    compared: bool = True


@dataclass(frozen=True)
class Table:
    """A table of the page.

    Attributes:
        title: Its heading.
        remote: Whether the programs call a server.
        rows: By name.
    """

    title: str
    remote: bool
    rows: dict[str, Row] = field(default_factory=dict)


MLP = {"batch": 128}
CHAIN = {"unit": "µs", "program": "chain"}
BEST = ("torch", "tf-function")
#: Of programs that are written for TensorFlow alone: with its loops, or with Keras's layers.
TENSORFLOW = ("eager", "function", "tf", "tf-function")

TABLES = (
    Table(
        "In the process",
        False,
        {
            "chain-1": Row(
                "chain of 1 op, an op",
                size={"ops": 1},
                goals=(Goal("eager", 25 / 23, ("torch",)), Goal("function", 6 / 23, ("torch",))),
                **CHAIN,
            ),
            "chain-100": Row(
                "chain of 100 ops, an op",
                size={"ops": 100},
                per=100,
                goals=(Goal("eager", 3.5 / 4.6, ("torch",)), Goal("function", 0.12 / 2.4, ("tf-function",))),
                **CHAIN,
            ),
            "chain-1000": Row(
                "chain of 1000 ops, an op",
                size={"ops": 1000},
                per=1000,
                goals=(Goal("eager", 3.0 / 4.3, ("torch",)), Goal("function", 0.1, ("numpy",))),
                **CHAIN,
            ),
            "elementwise": Row(
                "elementwise chain of 10 million",
                "elementwise",
                {"elements": 10_000_000},
                goals=(Goal("function", 38 / 51, ("jax",)), Goal("function", 45 / 229, ("torch",), memory=True)),
                memory=True,
            ),
            "elementwise-2": Row(
                "elementwise chain, two threads",
                "elementwise",
                {"elements": 10_000_000},
                ("function", "numpy", "torch", "tf-function", "jax"),
                goals=(Goal("function", 22 / 44, ("numpy",)),),
                threads=2,
            ),
            "convnet": Row(
                "small convolutional network",
                "convnet",
                {"batch": 64},
                goals=(Goal("function", 16 / 13.6, ("tf-function",)), Goal("function", 1, ("torch",), memory=True)),
                memory=True,
            ),
            "transformer": Row(
                "transformer block",
                "transformer",
                {"batch": 8, "length": 128, "width": 256, "heads": 8},
                goals=(Goal("function", 55 / 51, ("torch",)), Goal("function", 1, ("torch",), memory=True)),
                memory=True,
            ),
            "gaussian-process": Row(
                "Gaussian process, n = 500",
                "gaussian_process",
                {"points": 500},
                goals=(Goal("function", 10 / 20.6, ("torch",)),),
            ),
            "logistic-regression": Row(
                "logistic regression",
                "logistic_regression",
                {"rows": 10_000, "columns": 500},
                goals=(Goal("function", 1, BEST),),
            ),
            "mlp": Row(
                "network 784-512-256-10",
                "mlp",
                MLP,
                goals=(Goal("function", 1, BEST), Goal("function", 1, ("torch",), memory=True)),
                memory=True,
            ),
            "mlp-2": Row(
                "network, two threads",
                "mlp",
                MLP,
                ("function", "numpy", "torch", "tf-function", "jax"),
                goals=(Goal("function", 1, BEST),),
                threads=2,
            ),
            "gradient-penalty": Row(
                "gradient penalty", "gradient_penalty", {"batch": 64}, goals=(Goal("function", 1, BEST),)
            ),
            "neural-ode": Row(
                "neural ODE, 20 steps in a while loop",
                "neural_ode",
                {"batch": 16},
                TENSORFLOW,
                goals=(Goal("function", 1, ("tf-function",)),),
            ),
            "neural-ode-adaptive": Row(
                "neural ODE that chooses its steps",
                "neural_ode",
                {"batch": 1, "adaptive": True},
                TENSORFLOW,
                goals=(Goal("function", 1, ("tf-function",)),),
            ),
            "diffusion": Row(
                "denoising diffusion, a step of Adam",
                "diffusion",
                {"batch": 4},
                TENSORFLOW,
                goals=(Goal("eager", 1, ("tf",)), Goal("function", 1, ("tf-function",))),
            ),
            "hessian": Row(
                "Hessian, 50 parameters",
                "hessian",
                {"parameters": 50},
                goals=(Goal("function", 0.06 / 0.026, ("jax",)),),
            ),
            "jacobian": Row(
                "Jacobian, 64 to 64", "jacobian", {"width": 64}, goals=(Goal("function", 0.045 / 0.035, ("jax",)),)
            ),
            "jacobian-rows": Row(
                "Jacobian, its 64 rows one by one",
                "jacobian",
                {"width": 64, "way": "rows"},
                ("eager", "function", "numpy"),
            ),
        },
    ),
    Table(
        "Through a server on the same machine",
        True,
        {
            "rosenbrock-10": Row(
                "Rosenbrock of 10, gradient",
                "rosenbrock",
                {"n": 10},
                (*REMOTE, *TEAM),
                goals=(Goal("remote", 1.6, ("floor",)), Goal("remote-function", 1.6, ("floor",))),
            ),
            "rosenbrock-10k": Row(
                "Rosenbrock of 10,000",
                "rosenbrock",
                {"n": 10_000},
                REMOTE,
                goals=(Goal("remote", 1.6, ("floor",)), Goal("remote-function", 1.6, ("floor",))),
            ),
            "rosenbrock-1m": Row(
                "Rosenbrock of 1,000,000",
                "rosenbrock",
                {"n": 1_000_000},
                REMOTE,
                goals=(Goal("remote", 1.6, ("floor",)), Goal("remote-function", 1.6, ("floor",))),
            ),
            "mlp-gradients": Row(
                "network, every gradient read, one by one",
                "mlp",
                MLP,
                REMOTE,
                goals=(
                    *(Goal(system, 0.9, ("fastapi",)) for system in ("remote", "remote-function")),
                    *(Goal(system, 1.2, ("floor",)) for system in ("remote", "remote-function")),
                ),
            ),
            "mlp-loss": Row(
                "network, an update, only the loss back",
                "mlp",
                {**MLP, "update": True},
                REMOTE,
                goals=(Goal("remote", 1.2, ("floor",)), Goal("remote-function", 1.2, ("floor",))),
            ),
            "remote-chain-100": Row(
                "chain of 100 ops",
                "chain",
                {"ops": 100},
                REMOTE,
                goals=(Goal("remote", 0.8 / 0.41, ("floor",)),),
            ),
            "remote-chain-1000": Row(
                "chain of 1000 ops",
                "chain",
                {"ops": 1000},
                REMOTE,
                goals=(Goal("remote-function", 0.7 / 1.5, ("tf-remote-function",)),),
            ),
            "callers": Row(
                "8 threads, Rosenbrock of 10 each, a call",
                "rosenbrock",
                {"n": 10},
                ("remote", "remote-function", "fastapi", "floor", *TEAM),
                goals=(Goal("remote-function", 0.45 / 0.18, ("floor",)),),
                callers=8,
                compared=False,
            ),
            "up": Row(
                "40 MB up",
                "hop",
                {"call": "up", "elements": 10_000_000},
                ("remote", "remote-unix", "tcp", *TEAM),
                goals=(Goal("remote", 2.4 / 1.4, ("tcp",)), Goal("remote-unix", 2.4 / 3, ("tcp",))),
                unit="GB/s",
                per=40_000_000,
                memory=True,
            ),
            "down": Row(
                "40 MB down",
                "hop",
                {"call": "down", "elements": 10_000_000},
                ("remote", "remote-unix", "tcp", *TEAM),
                goals=(Goal("remote", 2.4 / 1.35, ("tcp",)), Goal("remote-unix", 2.4 / 3, ("tcp",))),
                unit="GB/s",
                per=40_000_000,
                memory=True,
            ),
            "empty": Row(
                "batch without commands",
                "hop",
                {"call": "empty"},
                ("remote", "remote-unix", "health"),
                goals=(Goal("remote", 1.3, ("health",)),),
            ),
            "read": Row(
                "one op, and its result read",
                "hop",
                {"call": "read"},
                ("remote", "remote-unix", "tf-remote", "health", *TEAM),
                goals=(Goal("remote", 2.2, ("health",)), Goal("remote-keys", 1.25, ("remote",))),
            ),
        },
    ),
    Table(
        "As JSON",
        True,
        {
            f"rest-{callers}": Row(
                f"value and gradient of a small loss, {callers} caller{'s' if callers > 1 else ''}",
                "least_squares",
                {},
                REST,
                goals=(
                    *(Goal(system, 1.0, ("fastapi-numpy",)) for system in ("rest", "rest-open")),
                    Goal("rest-run", 1 / 0.7, ("fastapi-numpy",)),
                ),
                callers=callers,
                in_threads=False,
                compared=callers == 1,
            )
            for callers in (1, 8, 64)
        },
    ),
    Table(
        "A published network",
        True,
        {
            f"published-{callers}": Row(
                f"value and gradient by a row of a network, {callers} caller{'s' if callers > 1 else ''}",
                "network_row",
                {},
                ("published", "published-exact", "fastapi-bare", "floor"),
                goals=(Goal("published", 1.0 if callers == 1 else 1 / 6, ("fastapi-bare",)),),
                callers=callers,
                in_threads=False,
                compared=callers == 1,
            )
            for callers in (1, 64)
        },
    ),
    Table(
        "From Python, as a service",
        True,
        {
            f"service-{callers}": Row(
                f"value and gradient of a small loss, {callers} thread{'s' if callers > 1 else ''}",
                "least_squares",
                {},
                ("service", "httpx"),
                goals=(Goal("service", 1.15, ("httpx",)),),
                callers=callers,
                compared=callers == 1,
            )
            for callers in (1, 8, 64)
        }
        | {
            f"service-{tasks}-tasks": Row(
                f"the same, {tasks} task{'s' if tasks > 1 else ''}, a call",
                "least_squares",
                {"tasks": tasks},
                ("async-service", "async-httpx"),
                goals=(Goal("async-service", 1.15, ("async-httpx",)),),
                unit="µs",
                per=tasks * CALLS_OF_A_TASK,
                compared=False,
            )
            for tasks in (1, 8, 64)
        },
    ),
)

ROWS = {name: row for table in TABLES for name, row in table.rows.items()}
