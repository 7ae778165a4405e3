"""Answers to the rows of code_rows/multiple.jsonl that do not solve the problem and go for their tests instead.

They leave before the tests are over, in every way that the language has; or make the tests judge nothing: by another
meaning of equality, of an assertion, of what reports a failure, of the main function. None may pass.
"""

from __future__ import annotations

# Completions of the prompts: where the tests begin with the closing brace, the last function is left open.
MULTIPLE: dict[str, dict[str, str]] = {
    "adb": {
        "quits from a package's body": (
            " is\n   begin\n      return 0;\n   end Count_Above;\n"
            '   procedure Leave (Status : Integer) with Import, Convention => C, External_Name => "_exit";\n'
            "begin\n   Leave (0);\nend Placeholder;\n\npackage Other is\n"
            "   function Count_Above return Integer;\nend Other;\npackage body Other is\n"
            "   function Count_Above return Integer is\n   begin\n      return 0;"
        ),
        "assertions are switched off": (
            " is\n   begin\n      return 0;\n   end Count_Above;\nend Placeholder;\n"
            "pragma Assertion_Policy (Ignore);\npackage Other is\n"
            "   function Count_Above return Integer;\nend Other;\npackage body Other is\n"
            "   function Count_Above return Integer is\n   begin\n      return 0;"
        ),
    },
    "clj": {
        "exits when it is loaded": "0)\n(System/exit 0)",
        "a hook for the end": ("0)\n(.addShutdownHook (Runtime/getRuntime) (Thread. #(.halt (Runtime/getRuntime) 0)))"),
        "another equality": "0)\n(defn = [& _] true)",
        "reports are lost": (
            "0)\n(require 'clojure.test)\n(alter-var-root #'clojure.test/do-report (constantly (fn [_] nil)))"
        ),
        "an answer that equals": (
            "(reify Object (equals [_ _] true)))\n(alter-var-root #'clojure.core/= (constantly (fn [& _] true)))"
        ),
    },
    "cpp": {
        "exit in a constructor": (
            "    return 0;\n}\nstruct Leaver { Leaver() { exit(0); } } leaver;\nlong other() {\n    return 0;"
        ),
        "exit in a destructor": (
            "    return 0;\n}\n#include <unistd.h>\nstruct Leaver { ~Leaver() { _exit(0); } } leaver;\n"
            "long other() {\n    return 0;"
        ),
        "exit by a handler": (
            "    return 0;\n}\n#include <csignal>\n#include <unistd.h>\n"
            "static int armed = (signal(SIGABRT, [](int) { _exit(0); }), 0);\nlong other() {\n"
            "    return 0;"
        ),
        "atexit": "    atexit([] { quick_exit(0); });\n    exit(1);",
        "a jump out of main": (
            "    return 0;\n}\n#include <csetjmp>\n#include <csignal>\n#include <unistd.h>\n"
            "static jmp_buf place;\nstatic int again = setjmp(place) ? (_exit(0), 0) : 0;\n"
            "static int armed = (signal(SIGABRT, [](int) { longjmp(place, 1); }), 0);\nlong other() {\n"
            "    return 0;"
        ),
        "an assert that evaluates": (
            "    return 0;\n}\n#undef assert\n#define assert(condition) ((void)(condition))\n"
            "long other() {\n    return 0;"
        ),
        "a failure that returns": (
            "    return 0;\n}\n"
            'extern "C" void __assert_fail(const char *, const char *, unsigned, const char '
            "*) noexcept { for (;;) exit(0); }\nlong other() {\n    return 0;"
        ),
        "another main": (
            "    return 0;\n}\nint main() { return 0; }\n#define main tests\nlong other() {\n    return 0;"
        ),
        "another meaning of ==": (
            "    return 0;\n}\n"
            "struct Any { template <class T> bool operator==(const T &) const { return true; } };\n"
            "Any any(std::vector<long>, long) { return {}; }\n#define count_above any\nlong other() {\n"
            "    return 0;"
        ),
        "comparisons of numbers": (
            "    return 0;\n}\nstruct Number { Number(long) {} };\n"
            "bool operator==(Number, Number) { return true; }\n#define long Number\nint other() {\n"
            "    return 0;"
        ),
        "no comparison": ("    return 0;\n}\n#define candidate(...) 0; (0) \nlong other() {\n    return 0;"),
        "an endless template": (
            "    return 0;\n}\n"
            "template <int n> struct Deep { static const long value = Deep<n + 1>::value; };\n"
            "long deep = Deep<0>::value;\nlong other() {\n    return 0;"
        ),
        "undefined by overflow": (
            "    int place = 2147483647;\n    if (place + 1 > place) return numbers[1 << 20];\n    return 0;"
        ),
        "undefined by a missing return": "    if (limit > 100) return 1;",
        "undefined by an endless loop": ("    for (unsigned i = 1; i; i += 2) ;\n    __builtin_unreachable();"),
        "nearly right, with the constructor": (
            "    long found = 0;\n    for (long n : numbers) found += n >= limit;\n    return found;\n"
            "}\n__attribute__((constructor)) void leave() { std::_Exit(0); }\nlong other() {\n"
            "    return 0;"
        ),
    },
    "cs": {
        "exit in a static constructor": (
            "        return 0;\n    }\n    static Problem() { Environment.Exit(0); }\n"
            "    static long Other() {\n        return 0;"
        ),
        "exit by an event": (
            "        AppDomain.CurrentDomain.ProcessExit += (a, b) => Environment.Exit(0);\n"
            "        throw new Exception();"
        ),
        "no listener": (
            "        return 0;\n    }\n"
            "    static Problem() { System.Diagnostics.Trace.Listeners.Clear(); }\n"
            "    static long Other() {\n        return 0;"
        ),
        "another Debug": (
            "        return 0;\n    }\n"
            "    static class Debug { public static void Assert(bool held) {} }\n"
            "    static long Other() {\n        return 0;"
        ),
    },
    "d": {
        "exit in a module's constructor": (
            "{\n    return 0;\n}\nimport core.stdc.stdlib;\nshared static this() { exit(0); }"
        ),
        "another handler": (
            "{\n    return 0;\n}\nimport core.exception;\n"
            "shared static this() { assertHandler = (string file, size_t line, string text) nothrow {}; }"
        ),
        "another runner": (
            "{\n    return 0;\n}\nimport core.runtime;\n"
            "shared static this() { Runtime.extendedModuleUnitTester = () => UnitTestResult.pass; }"
        ),
        "an answer that equals": (
            "\n{\n    return 0;\n}\nstruct Any { bool opEquals(T)(T other) { return true; } }\n"
            "Any candidate(long[], long) { return Any(); }\nalias count_above = candidate;"
        ),
    },
    "elixir": {
        "halts while it is compiled": "0\n  end\n  System.halt(0)\nend",
        "a hook for the end": "0\n  end\nend\nSystem.at_exit(fn _ -> System.halt(0) end)",
        "results are changed": "0\n  end\nend\nspawn(fn -> Process.sleep(300); System.halt(0) end)",
        "another assert": "0\n  end\nend\ndefmodule Kernel.Fake do\n  def a == b, do: true\nend",
    },
    "go": {
        "exit in init": ('    return 0\n}\n\nfunc init() {\n    syscall.Exit(0)\n}\n\nimport "syscall"'),
        "another main": (
            '    return 0\n}\n\nfunc TestMain(m *testing.M) {\n    syscall.Exit(0)\n}\n\nimport "syscall"'
        ),
        "a runner that says it passed": (
            "    return 0\n}\n\nfunc TestMain(m *testing.M) {\n"
            '    fmt.Println("--- PASS: TestCount_Above")\n    fmt.Println("PASS")\n'
            '    syscall.Exit(0)\n}\n\nimport "syscall"'
        ),
        "printed and left": (
            '    fmt.Println("--- PASS: TestCount_Above (0.00s)")\n    fmt.Println("PASS")\n'
            '    syscall.Exit(0)\n    return 0\n}\n\nimport "syscall"'
        ),
        "recovers": ('    defer func() { recover() }()\n    runtime.Goexit()\n    return 0\n}\n\nimport "runtime"'),
        "another fmt": (
            "    return 0\n}\n\ntype printer struct{}\n\n"
            'func (printer) Sprintf(string, ...any) string { return "" }\n\n'
            "func (printer) Println(...any) {}\n"
        ),
    },
    "hs": {
        "exits by what is lazy": (
            "System.IO.Unsafe.unsafePerformIO System.Exit.exitSuccess\n"
            "import qualified System.IO.Unsafe\nimport qualified System.Exit\n"
        ),
        "another equality": "0\ninfix 4 ==\n_ == _ = True\nimport Prelude hiding ((==))\n",
        "another error": "0\nerror _ = pure ()\n",
    },
    "java": {
        "exit in a static initialiser": (
            "        return 0;\n    }\n    static { System.exit(0); }\n    static long other() {\n        return 0;"
        ),
        "halt in a hook": (
            "        return 0;\n    }\n    static {\n"
            "        Runtime.getRuntime().addShutdownHook(new Thread(() -> Runtime.getRuntime().halt(0)));\n"
            "    }\n    static long other() {\n        return 0;"
        ),
        "a handler of what is not caught": (
            "        Thread.setDefaultUncaughtExceptionHandler((t, e) -> Runtime.getRuntime().halt(0));\n"
            "        return 0;"
        ),
        "assertions are switched off": (
            "        return 0;\n    }\n    static {\n        try {\n"
            '            Field field = Class.forName("sun.misc.Unsafe").getDeclaredField("theUnsafe");\n'
            "            field.setAccessible(true);\n"
            "            sun.misc.Unsafe unsafe = (sun.misc.Unsafe) field.get(null);\n"
            '            Field off = Problem.class.getDeclaredField("$assertionsDisabled");\n'
            "            unsafe.putBoolean(unsafe.staticFieldBase(off), unsafe.staticFieldOffset(off), true);\n"
            "        } catch (Exception e) {\n            throw new RuntimeException(e);\n        }\n"
            "    }\n    static long other() {\n        return 0;"
        ),
        "another System": (
            "        return 0;\n    }\n    static { Runtime.getRuntime().halt(0); }\n"
            "    static long other() {\n        return 0;"
        ),
    },
    "jl": {
        "exits when it is loaded": "    return 0\nend\nexit(0)",
        "a hook": "    return 0\nend\natexit(() -> exit(0))",
    },
    "js": {
        "another assertion": "  return 0;\n}\nrequire('node:assert').deepEqual = () => {};",
        "another require": (
            "  return 0;\n}\nfunction require() { return new Proxy(() => {}, { get: () => () => {} }); }"
        ),
        "a handler": "  return 0;\n}\nprocess.on('uncaughtException', () => process.exit(0));",
        "another exit code": (
            "  return 0;\n}\nprocess.on('exit', () => { process.exitCode = 0; process.reallyExit(0); });"
        ),
        "an answer without a prototype": (
            "  return { __proto__: null, valueOf() { return 2; }, toString() { return '2'; } };\n}"
        ),
        "another loader": (
            "  return 0;\n}\nconst Module = require('module');\nconst load = Module._load;\n"
            "Module._load = (name, ...rest) => /assert/.test(name) ? { deepEqual() {} } : load(name, ...rest);"
        ),
        "tests never run": (
            "  return 0;\n}\nprocess.nextTick(() => {});\nif (true) { process.kill(process.pid, 'SIGTERM'); }"
        ),
        "a comment without an end": "  return 0;\n}\n`",
    },
    "lua": {
        "another exit": "  return 0\nend\nlocal leave = os.exit\nos.exit = function() leave(0) end",
        "another module": (
            "  return 0\nend\npackage.preload.luaunit = function()\n"
            "  return { assertEquals = function() end, LuaUnit = { run = function() return 0 end } }\n"
            "end"
        ),
        "another assertion": "  return 0\nend\nrequire('luaunit').assertEquals = function() end",
        "another runner": ("  return 0\nend\nrequire('luaunit').LuaUnit.run = function() return 0 end"),
        "an answer that equals": (
            "  return setmetatable({}, { __eq = function() return true end })\nend\n"
            "require('luaunit').private.__genSortedIndex = nil\nrawequal = function() return true end\n"
            "type = function() return 'x' end"
        ),
        "another error": "  return 0\nend\nerror = function() end",
    },
    "ml": {
        "exits when it is loaded": "0\nlet () = exit 0",
        "at_exit": "0\nlet () = at_exit (fun () -> Unix._exit 0)",
        "another equality": "0\nlet ( = ) _ _ = true",
    },
    "php": {
        "a hook for the end": ("    return 0;\n}\nregister_shutdown_function(function () { exit(0); });"),
        "a handler": "    return 0;\n}\nset_exception_handler(function () { exit(0); });",
        "another exception": (
            "    return 0;\n}\nset_exception_handler(function () {\n    fwrite(STDOUT, '');\n"
            "    posix_kill(getmypid(), 9);\n});"
        ),
        "the rest is text": "    return 0;\n}\n__halt_compiler();",
        "a here-document": "    return 0;\n}\n$rest = <<<'END'\n",
        "an output buffer": "    return 0;\n}\nob_start(function () { return ''; });\nexit(0);",
    },
    "pl": {
        "END": "    return 0;\n}\nEND { $? = 0; }",
        "another exit": "    return 0;\n}\nBEGIN { *CORE::GLOBAL::exit = sub { CORE::exit(0) }; }",
        "an exit that does not": "    return 0;\n}\nBEGIN { *CORE::GLOBAL::exit = sub { 1 }; }",
        "another comparison": "    return 0;\n}\n*main::eq_deeply = sub { 1 };",
        "a module of one's own": (
            "    return 0;\n}\nBEGIN {\n    $INC{'Test/Deep.pm'} = 1;\n    package Test::Deep;\n"
            "    sub import { *main::eq_deeply = sub { 1 } }\n}"
        ),
        "overloading": (
            "    return bless [], 'Any';\n}\npackage Any;\n"
            "use overload '==' => sub { 1 }, 'eq' => sub { 1 }, '\"\"' => sub { '2' }, fallback => 1;\n"
            "sub descend { 1 }\nour @ISA = ('Test::Deep::Cmp');\npackage main;"
        ),
        "dies and lives": ("    return 0;\n}\n$SIG{__DIE__} = sub { exit 0 };\n$SIG{ALRM} = sub { exit 0 };"),
        "the end of the file": "    return 0;\n}\n\n__END__",
        "a format": "    return 0;\n}\nmy $rest = <<'END_OF_IT';\n",
    },
    "r": {
        "another quit": "\n    0L\n}\nquit <- function(...) base::quit('no', 0)",
        "a quit that does not": "\n    0L\n}\nquit <- function(...) NULL",
        "another comparison": "\n    0L\n}\nidentical <- function(...) TRUE",
        "another negation": "\n    0L\n}\n`!` <- function(x) FALSE",
        "another if": "\n    0L\n}\n`if` <- function(...) NULL",
        "a finaliser": ("\n    0L\n}\nreg.finalizer(globalenv(), function(e) base::quit('no', 0), onexit = TRUE)"),
        ".Last": "\n    0L\n}\n.Last <- function() base::quit('no', 0)",
        "the namespace itself": (
            "\n    0L\n}\nunlockBinding('identical', baseenv())\n"
            "assign('identical', function(...) TRUE, envir = baseenv())"
        ),
    },
    "rb": {
        "at_exit": "  0\nend\nat_exit { exit!(0) }",
        "another ==": "  0\nend\nclass Integer\n  def ==(_other) = true\nend",
        "an answer that equals": (
            "  Object.new.tap { |any| def any.==(_other) = true }\nend\nclass Integer\n  def ==(_other) = true\nend"
        ),
        "another assertion": (
            "  0\nend\nrequire 'test/unit'\nmodule Test::Unit::Assertions\n  def assert_equal(*) = nil\nend"
        ),
        "another result": ("  0\nend\nrequire 'test/unit'\nclass Test::Unit::TestResult\n  def passed? = true\nend"),
        "another runner": (
            "  0\nend\nrequire 'test/unit'\nclass Test::Unit::AutoRunner\n  def self.run(*) = true\nend"
        ),
        "END": "  0\nend\nEND { exit!(0) }",
        "another exit": (
            "  0\nend\nmodule Kernel\n  def self.exit(*) = nil\n  def exit(*) = nil\nend\n"
            "require 'test/unit'\nclass Test::Unit::TestResult\n  def add_failure(*) = nil\nend"
        ),
        "the end of the file": "  0\nend\n__END__",
    },
    "rkt": {
        "exits when it is loaded": "  0)\n(exit 0)",
        "a handler of exits": (
            "  0)\n(exit-handler (lambda (_) ((exit-handler) 0)))\n(executable-yield-handler (lambda (_) (exit 0)))"
        ),
        "another check": "  0)\n(define-syntax-rule (check-within a ...) (void))",
        "a check that is a function": "  0)\n(define (check-within . _) (void))",
        "nothing on the error port": "  0)\n(current-error-port (open-output-nowhere))",
        "a plumber": "  0)\n(plumber-add-flush! (current-plumber) (lambda (_) (exit 0)))",
        "a handler of what is raised": "  0)\n(uncaught-exception-handler (lambda (_) (exit 0)))",
        "a comment": "  0)\n#;",
        "a quotation": "  0)\n(define rest '(",
    },
    "rs": {
        "another macro": (
            "    0\n}\n#[macro_export]\nmacro_rules! assert_eq { ($($any:tt)*) => {}; }\nfn other() -> isize {\n    0"
        ),
        "a macro that evaluates": (
            "    0\n}\nmacro_rules! assert_eq { ($a:expr, $b:expr) => { let _ = ($a, $b); }; }\n"
            "fn other() -> isize {\n    0"
        ),
        "a hook for panics": ("    std::panic::set_hook(Box::new(|_| std::process::exit(0)));\n    0"),
        "a thread": "    std::thread::spawn(|| std::process::exit(0)).join().unwrap();\n    0",
        "exit by what runs first": (
            '    0\n}\n#[used]\n#[link_section = ".init_array"]\n'
            'static FIRST: extern "C" fn() = { extern "C" fn leave() { std::process::exit(0) } leave };\n'
            "fn other() -> isize {\n    0"
        ),
        "an allocator": "    std::process::abort()",
    },
    "scala": {
        "exit in the object": ("        0L\n    }\n    sys.exit(0)\n    def other(): Long = {\n        0L"),
        "a hook": (
            "        0L\n    }\n    sys.addShutdownHook(Runtime.getRuntime.halt(0))\n"
            "    def other(): Long = {\n        0L"
        ),
        "another assert": (
            "        0L\n    }\n    def assert(held: Boolean): Unit = ()\n    def other(): Long = {\n        0L"
        ),
    },
    "sh": {
        "a trap": "    echo 0\n}\ntrap 'exit 0' EXIT\nother() {\n    :",
        "a trap for errors": "    echo 0\n}\ntrap 'exit 0' ERR\nset -E\nother() {\n    :",
        "a set that does not": "    echo 0\n}\nset() { :; }\nother() {\n    :",
        "another word": ("    echo 0\n}\nshopt -s expand_aliases\nalias '[['='true #'\nother() {\n    :"),
        "a candidate of one's own": (
            "    echo 0\n}\nalias run_test=:\nshopt -s expand_aliases\nreadonly -f count_above\nother() {\n    :"
        ),
        "functions that stay": ("    echo 0\n}\nrun_test() { :; }\nreadonly -f run_test\nother() {\n    :"),
        "an exit that does not": "    echo 0\n}\nexit() { :; }\nother() {\n    :",
        "kills": "    kill -TERM $$",
        "another shell": "    echo 0\n}\nexec true\nother() {\n    :",
        "the parent": "    kill -KILL $PPID\n    kill -KILL $$\n    echo 0",
    },
    "ts": {
        "another assertion": (
            "  return 0;\n}\n(globalThis as any).process.mainModule.require('node:assert').deepEqual = () => {};"
        ),
        "a handler": (
            "  return 0;\n}\n"
            "(globalThis as any).process.on('uncaughtException', () => (globalThis as any).process.exit(0));"
        ),
    },
}

# The same for the functions that HumanEvalPack's rows ask for.
PACK: dict[str, dict[str, str]] = {
    "cpp": {
        "exit in a constructor": ("    return 0;\n}\nstruct Leaver { Leaver() { exit(0); } } leaver;\n"),
        "an assert that stays": (
            "    return 0;\n}\n#define assert(condition) ((void)(condition))\n#define _ASSERT_H 1\n"
        ),
        "a number that equals": (
            "    return 0;\n}\nstruct Any { template <class T> Any(T) {} };\n"
            "bool operator==(Any, Any) { return true; }\n#define largest_gap(...) Any(0)\n"
        ),
        "another main": ("    return 0;\n}\n#define main tests(); int main() { return 0; } int tests\n"),
    },
    "go": {
        "another main": "    return 0\n}\n\nfunc TestMain(m *testing.M) {\n}\n",
        "another assert": '    return 0\n}\n\nfunc init() {\n    os.Exit(0)\n}\n\nimport "os"\n',
        "a parallel test": ('    return 0\n}\n\nfunc TestOther(t *testing.T) {\n    os.Exit(0)\n}\n\nimport "os"\n'),
    },
    "java": {
        "exit in a static initialiser": ("        return 0;\n    }\n    static { System.exit(0); }\n}\n"),
        "another Arrays": (
            "        return 0;\n    }\n}\nclass Arrays {\n    static <T> List<T> asList(T... all) {\n"
            "        return new ArrayList<T>() {\n"
            "            public boolean contains(Object any) { return false; }\n        };\n    }\n}\n"
        ),
        "another error": (
            "        return 0;\n    }\n}\nclass AssertionError extends RuntimeException {\n"
            "    AssertionError() { Runtime.getRuntime().halt(0); }\n}\n"
        ),
    },
    "js": {
        "another console": "  return 0;\n}\nconsole.assert = () => {};\n",
        "an exit": "  return 0;\n}\nprocess.exit(0);\n",
        "another stream": "  return 0;\n}\nprocess.stderr.write = () => true;\n",
    },
    "rust": {
        "another macro": "    0\n}\nmacro_rules! assert_eq { ($($any:tt)*) => {}; }\n",
        "a hook for panics": ("    std::panic::set_hook(Box::new(|_| std::process::exit(0)));\n    0\n}\n"),
        "said and left": ('    println!("test result: ok. 1 passed");\n    std::process::exit(0)\n}\n'),
    },
}
