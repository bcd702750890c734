"""tf.name_scope; what is expected was recorded with TensorFlow 2.21."""

import threading

import pytest

from teletape.core.variables.name_scope import name_scope, scoped


def test_prefixes() -> None:
    assert scoped("k") == "k"
    with name_scope("a") as a:
        assert (a, scoped("k")) == ("a/", "a/k")
        with name_scope("b") as b:
            assert (b, scoped("k")) == ("a/b/", "a/b/k")
        with name_scope("d/e") as de:
            assert de == "a/d/e/"
        assert scoped("k") == "a/k"
    assert scoped("k") == "k"


def test_a_slash_at_the_end_replaces_the_outer_scopes() -> None:
    with name_scope("a"), name_scope("c/") as c:
        assert (c, scoped("k")) == ("c/", "c/k")


def test_the_empty_name_leaves_all_scopes() -> None:
    with name_scope("a"), name_scope("") as none:
        assert (none, scoped("k")) == ("", "k")


def test_one_scope_inside_itself() -> None:
    q = name_scope("q")
    assert q.name == "q"
    with q as outer, q as inner:
        assert (outer, inner, scoped("k")) == ("q/", "q/q/", "q/q/k")
    with q as again:
        assert again == "q/"


def test_an_exception_leaves_the_scope() -> None:
    with pytest.raises(KeyError), name_scope("a"):
        raise KeyError
    assert scoped("k") == "k"


def test_scopes_belong_to_a_thread() -> None:
    seen: list[str] = []
    with name_scope("a"):
        thread = threading.Thread(target=lambda: seen.append(scoped("k")))
        thread.start()
        thread.join()
    assert seen == ["k"]


@pytest.mark.parametrize("name", [3, None])
def test_not_a_string(name: object) -> None:
    with pytest.raises(ValueError, match=r"name for name_scope must be a string\."):
        name_scope(name)  # type: ignore[arg-type]
