"""End marks: show that the tests at the end of a source have finished.

Except in Python, tests and program are one source, and the exit status cannot tell a pass
from an early exit: `exit(0)` in the function under test, a `return` at the top level, a
here-document that swallows the tests. So code that prints a mark follows the tests; test
frameworks that report passed tests need none. Each sandbox has a random mark. The code
contains it in two halves, so that a source that prints itself does not print the mark.
"""

from __future__ import annotations

import re
import secrets

from msgspec import Struct

from proctor.sandbox.languages import Language

_HALF = 16


class EndMarker(Struct, frozen=True):
    append: str = ""
    """Code after the tests; «a» and «b» stand for the halves of the mark."""
    pattern: str = ""
    """The last match is replaced: the tests' main function, or an exit in the last line."""
    replacement: str = ""
    signs: tuple[str, ...] = ()
    """Patterns in the output of a test framework, which must all match; replace the mark."""
    only_with: str = ""
    """For a source without this text, which lacks the framework, the exit status decides."""


# `--wrap=main` calls this instead of the source's main, which may lack a return. It also
# checks that `assert` works: a source can define NDEBUG, or the macro.
_C_MAIN = """
int proctor_asserts = 0;
int __real_main(int, char **);
int __wrap_main(int count, char **words) {
    int status = __real_main(count, words);
#ifdef assert
    assert(++proctor_asserts);
    if (!proctor_asserts) return 1;
#endif
    __builtin_printf("%s%s\\n", "«a»", "«b»");
    return status;
}
"""

_BARE_EXIT = r"^exit\s*+\(?+\s*+0?+\s*+\)?+[\s;]*+\Z"
_NODE_EXIT = r"^process\.exit\([\s0]*+\)[\s;]*+\Z"

ENDINGS = {
    "ada": EndMarker(
        append="""
with Main;
with Ada.Text_IO;
procedure Proctor_End is
begin
   Main;
   Ada.Text_IO.Put_Line ("«a»" & "«b»");
end Proctor_End;
"""
    ),
    "bash": EndMarker(
        pattern=r"^exit(?:[ \t]++0)?[\s;]*+\Z",
        replacement=":",
        append="proctor_status=$?; builtin printf '%s%s\\n' «a» «b»; exit $proctor_status",  # that of the last test
    ),
    "c": EndMarker(append=_C_MAIN),
    "clojure": EndMarker(append='(do (clojure.core/println (clojure.core/str "«a»" "«b»")) (clojure.core/flush))'),
    "cpp": EndMarker(append=f'extern "C" {{{_C_MAIN}}}'),
    "csharp": EndMarker(
        append="""
static class ProctorEnd {
    static int Main(string[] words) {
        var any = System.Reflection.BindingFlags.Static | System.Reflection.BindingFlags.Public
            | System.Reflection.BindingFlags.NonPublic;
        foreach (var type in typeof(ProctorEnd).Assembly.GetTypes()) {
            var main = type == typeof(ProctorEnd) ? null : type.GetMethod("Main", any);
            if (main == null) continue;
            var status = main.Invoke(null, main.GetParameters().Length == 0 ? null : new object[] { words });
            System.Console.WriteLine("«a»" + "«b»");
            return status is int ? (int)status : 0;
        }
        return 1;
    }
}
"""
    ),
    "d": EndMarker(signs=(r"\d modules? passed unittests",), only_with="unittest"),
    "dart": EndMarker(
        pattern=r"\bmain(?=\s*\()",
        replacement="proctorTests",
        append="""
Future<void> main() async {
  final Function tests = proctorTests;
  final dynamic left = tests();
  if (left is Future) await left;
  print('«a»' '«b»');
}
""",
    ),
    "elixir": EndMarker(
        append="""
if Process.whereis(ExUnit.Server) do
  ExUnit.after_suite(fn result ->
    if result.failures == 0 and result.total > 0, do: IO.puts("«a»" <> "«b»")
  end)
else
  IO.puts("«a»" <> "«b»")
end
"""
    ),
    "go": EndMarker(
        pattern=r"\bfunc\s+main(?=\s*\()",
        replacement="func proctorTests",
        append='func main() { proctorTests(); println("«a»" + "«b»") }',
    ),
    "go-test": EndMarker(signs=(r"^--- PASS: ", r"^PASS$")),
    "haskell": EndMarker(
        append="""
proctorEnd :: Prelude.IO ()
proctorEnd = main Prelude.>> Prelude.putStrLn ("«a»" Prelude.++ "«b»")
"""
    ),
    "java": EndMarker(
        append="""
class ProctorEnd {
    public static void main(java.lang.String[] words) throws java.lang.Throwable {
        «main».main(words);
        java.lang.System.out.println("«a»" + "«b»");
    }
}
"""
    ),
    "javascript": EndMarker(pattern=_NODE_EXIT, append=';globalThis.process.stdout.write("«a»" + "«b»" + "\\n");'),
    "julia": EndMarker(pattern=r"^exit\([\s0]*+\)[\s;]*+\Z", append='Base.println("«a»", "«b»")'),
    "lua": EndMarker(
        pattern=r"^os\.exit\((.+)\)[\s;]*+\Z",
        replacement=r"""
local proctor_status = \1
if proctor_status == 0 or proctor_status == true then io.write("«a»", "«b»", "\\n") end
os.exit(proctor_status)
""",
        append='io.write("«a»", "«b»", "\\n")',
    ),
    "ocaml": EndMarker(append=';;\nlet () = Stdlib.print_endline (Stdlib.( ^ ) "«a»" "«b»")'),
    "perl": EndMarker(pattern=_BARE_EXIT, append=';\npackage main;\nprint STDOUT "«a»" . "«b»" . "\\n";'),
    "php": EndMarker(
        pattern=r"^exit(?:\([\s0]*+\))?+\s*+;\s*+(?:\?>)?+\s*+\Z|\?>\s*+\Z",
        append='\\fwrite(\\STDOUT, "«a»" . "«b»" . "\\n");',
    ),
    "r": EndMarker(pattern=r"^(?:q|quit)\([^\n1-9)]*+\)\s*+\Z", append='base::cat("«a»", "«b»", "\\n", sep = "")'),
    "racket": EndMarker(append='(void (write-string "«a»") (write-string "«b»\\n"))'),
    "ruby": EndMarker(
        pattern=_BARE_EXIT,
        append="""
if defined?(::Test::Unit::AutoRunner)
  ::Test::Unit::AutoRunner.need_auto_run = false
  ::Kernel.exit(1) unless ::Test::Unit::AutoRunner.run
end
::STDOUT.write("«a»", "«b»", "\\n")
""",
    ),
    "rust": EndMarker(
        pattern=r"\bfn\s+main(?=\s*\()",
        replacement="fn proctor_tests",
        append="""
fn main() -> ::std::process::ExitCode {
    let left = proctor_tests();
    let status = ::std::process::Termination::report(left);
    ::std::println!("{}{}", "«a»", "«b»");
    status
}
""",
    ),
    "rust-test": EndMarker(signs=(r"^test result: ok\. [1-9]",)),
    "scala": EndMarker(
        append="""
object ProctorEnd {
  def main(words: Array[String]): Unit = {
    «main».main(words)
    Console.println("«a»" + "«b»")
  }
}
"""
    ),
    "swift": EndMarker(append='Swift.print("«a»" + "«b»")'),
    "typescript": EndMarker(
        pattern=_NODE_EXIT, append=';(globalThis as any).process.stdout.write("«a»" + "«b»" + "\\n");'
    ),
}

# Calls that may exit with status 0: tests with one of them may end a right program early.
_EXITS = re.compile(
    r"\b(?:_?exit|quick_exit|quit|halt|Exit|Halt|OS_Exit|exitSuccess|exitWith)\b(?!\s*+\(?+\s*+-?+[1-9])"
)


def may_exit(language: Language, tests: str) -> bool:
    """Whether tests of unknown make may end a right program before its last line."""
    ending = ENDINGS.get(language.name, EndMarker())
    last = re.search(ending.pattern, tests, re.MULTILINE) if ending.pattern.endswith(r"\Z") else None
    return bool(_EXITS.search(tests[: last.start()] if last else tests)) or (language.name == "php" and "die" in tests)


class EndMark:
    """The mark of one sandbox."""

    def __init__(self) -> None:
        self._text = secrets.token_hex(_HALF)

    def finished(self, language: Language, source: str, main: str) -> str:
        """Adds the mark to a source. ``main``: the class with the main method on a JVM."""
        ending = ENDINGS.get(language.name, EndMarker())
        matches = list(re.finditer(ending.pattern, source, re.MULTILINE)) if ending.pattern else []
        if matches:
            last = matches[-1]
            source = source[: last.start()] + last.expand(self._filled(ending.replacement, main)) + source[last.end() :]
        return f"{source}\n{self._filled(ending.append, main)}\n" if ending.append else source

    def _filled(self, code: str, main: str) -> str:
        return code.replace("«a»", self._text[:_HALF]).replace("«b»", self._text[_HALF:]).replace("«main»", main)

    def was_reached(self, language: Language, source: str, stdout: str, stderr: str) -> bool:
        """Whether the output has the mark; True in languages without an ending."""
        ending = ENDINGS.get(language.name)
        if ending is None or ending.only_with not in source:
            return True
        if ending.signs:
            return all(re.search(sign, f"{stdout}\n{stderr}", re.MULTILINE) for sign in ending.signs)
        return self._text in stdout or self._text in stderr

    def removed(self, output: str) -> str:
        return output.replace(f"{self._text}\n", "")
