"""How a source that ends with its own tests shows that they came to their end.

Outside Python tests and program are one source, and the exit status alone cannot tell a program that passed its tests
from one that left before them: `exit(0)` in the function under test, a `return` at the top level, a here-document that
swallows the tests. So code is put after the tests that prints a mark; a test framework that reports what it ran needs
no mark. The mark is drawn anew for each sandbox, and the code has it in two halves: a source that is printed instead of
being run does not print it.
"""

from __future__ import annotations

import re
import secrets

from msgspec import Struct

from proctor.sandbox.languages import Language

_HALF = 16


class EndMarker(Struct, frozen=True):
    append: str = ""
    """Code after the tests. «a» and «b» stand for the halves of the mark."""
    pattern: str = ""
    """The last match in the source is replaced: the name of the tests' main function, or an exit as the last line."""
    replacement: str = ""
    signs: tuple[str, ...] = ()
    """Patterns of what a test framework writes when its tests have passed: all must be found, and no mark is needed."""
    only_with: str = ""
    """A source without this text does not use that framework, and has only its exit status."""


# `--wrap=main` puts this between the C library and the source's own main, which may end without a return. It also sees
# whether `assert` still does anything: a source can define NDEBUG, or the macro itself.
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

# Calls that end a program well, or may: tests with one of them may end a right program anywhere.
_EXITS = re.compile(
    r"\b(?:_?exit|quick_exit|quit|halt|Exit|Halt|OS_Exit|exitSuccess|exitWith)\b(?!\s*+\(?+\s*+-?+[1-9])"
)


def may_exit(language: Language, tests: str) -> bool:
    """Whether tests of unknown make may end a program that passes them before its last line."""
    ending = ENDINGS.get(language.name, EndMarker())
    last = re.search(ending.pattern, tests, re.MULTILINE) if ending.pattern.endswith(r"\Z") else None
    return bool(_EXITS.search(tests[: last.start()] if last else tests)) or (language.name == "php" and "die" in tests)


class EndMark:
    """The mark of one sandbox."""

    def __init__(self) -> None:
        self._text = secrets.token_hex(_HALF)

    def finished(self, language: Language, source: str, main: str) -> str:
        """The source with what shows that it came to its end. ``main``: the class with the main method on a JVM."""
        ending = ENDINGS.get(language.name, EndMarker())
        found = list(re.finditer(ending.pattern, source, re.MULTILINE)) if ending.pattern else []
        if found:
            last = found[-1]
            source = source[: last.start()] + last.expand(self._filled(ending.replacement, main)) + source[last.end() :]
        return f"{source}\n{self._filled(ending.append, main)}\n" if ending.append else source

    def _filled(self, code: str, main: str) -> str:
        return code.replace("«a»", self._text[:_HALF]).replace("«b»", self._text[_HALF:]).replace("«main»", main)

    def was_reached(self, language: Language, source: str, stdout: str, stderr: str) -> bool:
        """By what the program wrote. A language without an ending has only its exit status."""
        ending = ENDINGS.get(language.name)
        if ending is None or ending.only_with not in source:
            return True
        if ending.signs:
            return all(re.search(sign, f"{stdout}\n{stderr}", re.MULTILINE) for sign in ending.signs)
        return self._text in stdout or self._text in stderr

    def removed(self, output: str) -> str:
        return output.replace(f"{self._text}\n", "")
