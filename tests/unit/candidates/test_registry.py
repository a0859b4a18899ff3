from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pytest_modelbench.candidates.registry import Registry
from pytest_modelbench.errors import RegistryProblem
from pytest_modelbench.gateway.patience import Patience
from pytest_modelbench.records import Candidate, Limits

LOCAL = """\
[candidates.local-coder]
model = "openai/qwen-1.5b"
api_base = "http://127.0.0.1:8081/v1"
note = "two cores"

[candidates.local-coder.params]
temperature = 0.7
seed = 1

[candidates.local-coder.limits]
turns = 20
"""


def read(root: Path, toml: str) -> Registry:
    (root / "modelbench.toml").write_text(toml, encoding="utf-8")
    return Registry.read(root)


def refusal(root: Path, toml: str) -> RegistryProblem:
    with pytest.raises(RegistryProblem) as caught:
        read(root, toml)
    return caught.value


def test_a_candidate_is_read_with_all_its_keys(tmp_path: Path) -> None:
    (found,) = read(tmp_path, LOCAL).resolve(["local-coder"])
    assert found == Candidate(
        name="local-coder",
        model="openai/qwen-1.5b",
        api_base="http://127.0.0.1:8081/v1",
        params={"temperature": 0.7, "seed": 1},
        limits=Limits(turns=20),
        note="two cores",
    )


def test_without_a_file_the_built_in_ones_and_raw_names_are_known(tmp_path: Path) -> None:
    registry = Registry.read(tmp_path)
    reference, seed, raw = registry.resolve(["reference", "seed", "openai/gpt-5"])
    assert (reference.agent, seed.agent) == ("reference", "seed")
    assert not reference.calls_model
    assert (raw.name, raw.model, raw.agent) == ("openai/gpt-5", "openai/gpt-5", "loop")
    assert registry.known == ("reference", "seed")


@pytest.mark.parametrize(
    "name", ["openrouter/qwen/qwen3-coder:free", "bedrock/anthropic.claude-v2", "vertex_ai/g@002"]
)
def test_a_raw_name_keeps_its_slashes_and_colons(tmp_path: Path, name: str) -> None:
    assert Registry.read(tmp_path).resolve([name])[0].model == name


@pytest.mark.parametrize("name", ["", "/gpt-5", "openai/", "openai/../x", "a//b", "a b/c", "../x"])
def test_a_name_that_is_none_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(RegistryProblem, match="no candidate is named"):
        Registry.read(tmp_path).resolve([name])


def test_an_unknown_name_says_where_no_registry_is(tmp_path: Path) -> None:
    with pytest.raises(RegistryProblem) as caught:
        Registry.read(tmp_path).resolve(["local"])
    assert str(caught.value).startswith(
        f"{tmp_path}/modelbench.toml: no candidate is named 'local', and there is no such file; "
    )


def test_an_unknown_name_lists_the_known_ones_and_the_close_one(tmp_path: Path) -> None:
    registry = read(tmp_path, LOCAL)
    with pytest.raises(RegistryProblem) as caught:
        registry.resolve(["reference", "local-codr"])
    assert caught.value.remedy.startswith(
        "did you mean local-coder? Known: local-coder, reference, seed"
    )


def test_a_name_given_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RegistryProblem, match="seed is named twice"):
        Registry.read(tmp_path).resolve(["seed", "reference", "seed"])


@pytest.mark.parametrize(
    ("toml", "line", "what"),
    [
        ("[gateway]\nretries = 0\nretry = 1\n", 3, "unknown key retry"),
        ("[gateway]\nmax_wait = -1\n", 2, "gateway.max_wait: should be greater than"),
        ("[candidates.a]\nmodel = 'x/y'\nmodle = 'z'\n", 3, "unknown key modle"),
        ("[candidates.a]\nmodel = 'x/y'\n[candidates.a.limits]\nturn = 3\n", 4, "limits.turn"),
        ("[candidates.a]\nmodel = 'x/y'\nlimits = {turns = '3'}\n", 3, "limits.turns: should be"),
        ("[candidates.a]\nmodel = 3\n", 2, "candidates.a.model: should be a valid string"),
        ("\n[candidates.a]\nnote = 'x'\n", 2, "candidate a has no model"),
        ("[candidates.'a b']\nmodel = 'x/y'\n", 1, "'a b' cannot be a name"),
        ("[candidates.seed]\nmodel = 'x/y'\n", 1, "seed is built in"),
        ("candidates = 3\n", 1, "candidates is not a table"),
        ("[candidate.a]\nmodel = 'x/y'\n", 1, "unknown key candidate"),
        ("[candidates.a]\nmodel = 'x/y'\nagent = 'codex'\n", 3, "'codex' is no agent"),
        ("[candidates.a]\nagent = 'scripted'\n", 1, "candidate a has no script"),
        ("[candidates.a]\nagent = 'scripted'\nscript = 'no.toml'\n", 3, "there is no no.toml"),
        ("[candidates.a]\nmodel = 'x/y'\nscript = 'no.toml'\n", 3, "only a scripted candidate"),
        ("[candidates.a]\nmodel = 'x/y'\nserver = 'gpu'\n", 3, "there is no [servers.gpu]"),
        ("[candidates.a]\nmodel = 'x/y'\napi_base = 'localhost:80'\n", 3, "not an address"),
        ("[candidates.a]\nmodel = 'x/y'\napi_base = 'http://[::1'\n", 3, "not an address"),
        ("[candidates.a]\nmodel = 'x/y'\napi_base = 'http://h:99999/v1'\n", 3, "not an address"),
        ("[candidates.a]\nmodel = 'x/y'\napi_base = 'http://a b/v1'\n", 3, "not an address"),
        ("[candidates.a]\nmodel = 'x/y'\nlimits = {seconds = inf}\n", 3, "finite number"),
        ("[gateway]\nmax_wait = inf\n", 2, "gateway.max_wait: should be a finite number"),
        ("[candidates.a]\nmodel = 'x/y'\nparams.tools = []\n", 3, "params may not hold tools"),
        ("[candidates.a]\nmodel = 'x/y'\nparams.temp = 1\n", 3, "a misspelt temperature"),
        ("[candidates.a]\nmodel = 'x/y'\nparams.temprature = 1\n", 3, "a misspelt temperature"),
        ("[candidates.a]\nmodel = 'x/y'\nparams.top-p = 1\n", 3, "params.top-p looks like a"),
        ("[candidates.a]\nmodel = 'x/y'\nparams.Seed = 1\n", 3, "a misspelt seed"),
        ("[candidates.a]\nmodel = 'x/y'\nparams.max_token = 1\n", 3, "a misspelt max_tokens"),
        ("[candidates.a]\nmodel = 'x/y'\nparams.temperature = 'hot'\n", 3, "is not a number"),
        (
            "[candidates.a]\nmodel = 'x/y'\nparams.temperature = nan\n",
            3,
            "should be a finite number",
        ),
        ("[candidates.a]\nmodel = 'x/y'\nparams.temperature = true\n", 3, "is not a number"),
        ("[candidates.a]\nmodel = 'x/y'\nparams.seed = 1.5\n", 3, "seed is not a whole number"),
        ("[candidates.a]\nmodel = 'x/y'\nparams.stop = 3\n", 3, "stop is not text or a list"),
        ("[candidates.a]\nmodel = 'x/y'\nprice.inputs = 1.0\n", 3, "unknown price inputs"),
        ("[candidates.a]\nmodel = 'x/y'\nprice.input = -1.0\n", 3, "a price of -1.0"),
        ("[candidates.a]\nmodel = 'x/y'\ntuning.prose_limit = 0\n", 3, "tuning.prose_limit"),
        ("[candidates.a]\nmodel = 'x/y'\ntuning.temprature = 0\n", 3, "unknown key candidates.a.t"),
        ("[servers.gpu]\nconcurency = 3\n", 2, "unknown key concurency"),
        ("[servers.gpu]\nconcurrency = 0\n", 2, "servers.gpu.concurrency"),
        ("litellm_config = 'none.yaml'\n", 1, "there is no none.yaml"),
        ("[candidates.a]\nmodel = \n", 2, "is not TOML: Invalid value"),
        ("[candidates.a]\nmodel = 'x/y'\n[candidates.a]\n", 3, "is not TOML"),
    ],
)
def test_what_is_not_sound_names_file_and_line(
    tmp_path: Path, toml: str, line: int, what: str
) -> None:
    problem = refusal(tmp_path, toml)
    assert (problem.path, problem.line) == (tmp_path / "modelbench.toml", line)
    assert what in problem.what
    assert str(problem).startswith(f"{tmp_path / 'modelbench.toml'}:{line}: ")


def test_a_close_key_is_suggested(tmp_path: Path) -> None:
    assert (
        "did you mean api_base?"
        in refusal(tmp_path, "[candidates.a]\nmodel = 'x/y'\napi_bas = 'x'\n").remedy
    )


@pytest.mark.parametrize(
    "param",
    [
        *("temperature = 1", "top_p = 0.9", "stop = ['x']", "stop = 'x'", "logprobs = true"),
        *("top_a = 0.1", "max_new_tokens = 9", "think = false", "reasoning = {effort = 'low'}"),
        *("mirostat_tau = 5.0", "extra_body = {temprature = 1}", "chat_template_kwargs = {}"),
        *("cache_prompt = false", "drop_params = true", "reasoning_effort = 'low'", "n_keep = 1"),
    ],
)
def test_a_parameter_of_some_server_is_kept(tmp_path: Path, param: str) -> None:
    toml = f"[candidates.a]\nmodel = 'x/y'\nparams.{param}\n"
    (found,) = read(tmp_path, toml).resolve(["a"])
    assert list(found.params) == [param.partition(" ")[0]]


@pytest.mark.parametrize(
    "lines",
    [
        "api_key = 'abc-very-secret'",
        "params.api_key = 'abc-very-secret'",
        "params.extra_headers = {Authorization = 'abc-very-secret'}",
        "api_key_env = 'abc-very-secret'",
        "options.list = ['sk-abc-very-secret']",
        "api_base = 'http://me:abc-very-secret@example.org/v1'",
    ],
)
def test_a_key_in_the_file_is_refused_and_never_quoted(tmp_path: Path, lines: str) -> None:
    problem = refusal(tmp_path, f"[candidates.a]\nmodel = 'x/y'\n{lines}\n")
    assert problem.line == 3
    assert "very-secret" not in str(problem)
    assert "api_key_env" in str(problem)


def test_how_long_calls_are_tried_can_be_declared(tmp_path: Path) -> None:
    assert read(tmp_path, LOCAL).patience == Patience(retries=4, max_wait=300, call_seconds=600)
    declared = read(tmp_path, LOCAL + "[gateway]\nretries = 0\nmax_wait = 20\n").patience
    assert declared == Patience(retries=0, max_wait=20, call_seconds=600)


def test_a_script_is_found_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo/careful.toml").touch()
    registry = read(
        tmp_path, "[candidates.careful]\nagent = 'scripted'\nscript = 'demo/careful.toml'\n"
    )
    assert registry.candidates["careful"].script == str(tmp_path / "demo/careful.toml")


def test_one_private_address_is_one_server_and_its_models_take_turns(tmp_path: Path) -> None:
    registry = read(
        tmp_path,
        """
        servers.gpu0.concurrency = 4
        [candidates]
        a = {model = "openai/a", api_base = "http://127.0.0.1:80/v1"}
        a-warm = {model = "openai/a", api_base = "http://127.0.0.1:80/v1", params.temperature = 1}
        b = {model = "openai/b", api_base = "http://localhost/v1"}
        other-port = {model = "openai/c", api_base = "http://127.0.0.1:81/v1"}
        lan = {model = "openai/d", api_base = "http://10.0.0.7:81/v1"}
        public = {model = "openai/e", api_base = "https://api.example.org/v1"}
        public-too = {model = "openai/f", api_base = "https://api.example.org/v1"}
        x = {model = "openai/x", server = "gpu0"}
        y = {model = "openai/y", server = "gpu0"}
        """,
    )
    servers = {name: registry.server_of(one) for name, one in registry.candidates.items()}
    assert servers == {
        "a": "localhost:80",
        "a-warm": "localhost:80",
        "b": "localhost:80",
        "other-port": "localhost:81",
        "lan": "10.0.0.7:81",
        "public": "",
        "public-too": "",
        "x": "gpu0",
        "y": "gpu0",
    }
    assert registry.servers["gpu0"].concurrency == 4
    assert registry.taking_turns([*registry.candidates.values(), *registry.resolve(["seed"])]) == {
        "localhost:80": (("a", "a-warm"), ("b",)),
        "gpu0": (("x",), ("y",)),
    }


def test_reading_candidates_imports_neither_litellm_nor_yaml() -> None:
    code = (
        "import sys, pathlib; from pytest_modelbench.candidates.registry import Registry;"
        "Registry.read(pathlib.Path('.')); print({'litellm', 'yaml', 'httpx'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
