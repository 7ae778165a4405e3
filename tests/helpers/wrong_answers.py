"""Answers that must not pass: for each language to the rows of code_rows/multiple.jsonl and humanevalpack.jsonl.

An empty body, a constant, and one that leaves with exit status 0 before the tests are over. The nearly right answers
are the references with `>=` for `>`, and the rows' own buggy solutions.
"""

from __future__ import annotations

# Completions of the prompts: where the tests begin with the closing brace, the body is left open.
MULTIPLE = {
    "adb": {
        "empty": " is\n   begin\n      null;",
        "constant": " is\n   begin\n      return 0;",
        "exit": ' is\n      procedure Leave (Status : Integer) with Import, Convention => C, External_Name => "exit";\n'
        "   begin\n      Leave (0);\n      return 0;",
    },
    "clj": {"empty": "nil)", "constant": "0)", "exit": "(System/exit 0))"},
    "cpp": {"empty": "", "constant": "    return 0;", "exit": "    exit(0);"},
    "cs": {"empty": "", "constant": "        return 0;", "exit": "        Environment.Exit(0);\n        return 0;"},
    "d": {
        "empty": "{\n}",
        "constant": "{\n    return 0;\n}",
        "exit": "{\n    import core.stdc.stdlib : exit;\n    exit(0);\n    return 0;\n}",
    },
    "dart": {"empty": "", "constant": "  return 0;"},
    "elixir": {"empty": "nil\n  end\nend", "constant": "0\n  end\nend", "exit": "System.halt(0)\n  end\nend"},
    "go": {
        "empty": "}",
        "constant": "    return 0\n}",
        "exit": '    syscall.Exit(0)\n    return 0\n}\n\nimport "syscall"',
    },
    "hs": {"empty": "undefined", "constant": "0"},
    "java": {"empty": "", "constant": "        return 0;", "exit": "        System.exit(0);\n        return 0;"},
    "jl": {"empty": "end", "constant": "    return 0\nend", "exit": "    exit(0)\nend"},
    "js": {"empty": "}", "constant": "  return 0;\n}", "exit": "  process.exit(0);\n}"},
    "lua": {"empty": "end", "constant": "  return 0\nend", "exit": "  os.exit(0)\nend"},
    "ml": {"empty": 'failwith ""', "constant": "0", "exit": "exit 0"},
    "php": {"empty": "}", "constant": "    return 0;\n}", "exit": "    exit(0);\n}"},
    "pl": {"empty": "}", "constant": "    return 0;\n}", "exit": "    exit 0;\n}"},
    "py": {"empty": "    pass", "constant": "    return 0", "exit": "    raise SystemExit(0)"},
    "r": {"empty": "\n}", "constant": "\n    0L\n}", "exit": "\n    quit('no', 0)\n}"},
    "rb": {"empty": "end", "constant": "  0\nend", "exit": "  exit(0)\nend"},
    "rkt": {"empty": "  (void))", "constant": "  0)", "exit": "  (exit 0))"},
    "rs": {"empty": "", "constant": "    0", "exit": "    std::process::exit(0)"},
    "scala": {"empty": "", "constant": "        0L", "exit": "        sys.exit(0)"},
    "sh": {"empty": "    :", "constant": "    echo 0", "exit": "    echo 0\n}\nexit 0\nother() {\n    :"},
    "swift": {"empty": "", "constant": "    return 0"},
    "ts": {
        "empty": "}",
        "constant": "  return 0;\n}",
        "exit": "  (globalThis as any).process.exit(0);\n  return 0;\n}",
    },
}

# Programs that never get to their tests, or let them judge nothing: put before the tests of the same rows.
TESTLESS = {
    "cpp": "    return 0;\n}\n#undef assert\n#define assert(condition)\nlong other() {\n    return 0;",
    "go": "    return 0\n}\n\n/*",
    "js": "  return 0;\n}\nreturn;",
    "lua": "  return 0\nend\nos.exit(0)",
    "php": "    return 0;\n}\nreturn;",
    "pl": "    return 0;\n}\n\n=pod",
    "rb": "  0\nend\nreturn",
    "sh": "    echo 0\n}\ncat <<'END'\n{",
}

# Bodies of the function that HumanEvalPack's rows ask for, up to its end.
PACK = {
    "python": {
        "empty": "    pass\n",
        "constant": "    return 4\n",
        "exit": "    import sys\n    sys.exit(0)\n",
    },
    "cpp": {"empty": "}\n", "constant": "    return 4;\n}\n", "exit": "    exit(0);\n}\n"},
    "go": {"empty": "}\n", "constant": "    return 4\n}\n", "exit": "    runtime.Goexit()\n    return 4\n}\n"},
    "java": {
        "empty": "    }\n}",
        "constant": "        return 4;\n    }\n}",
        "exit": "        System.exit(0);\n        return 4;\n    }\n}",
    },
    "js": {"empty": "}\n", "constant": "  return 4;\n}\n", "exit": "  process.exit(0);\n}\n"},
    "rust": {"empty": "}\n", "constant": "    return 4;\n}\n", "exit": "    std::process::exit(0);\n}\n"},
}

# Python's benchmarks, by how the names of their tasks begin: completions of the first row's prompt.
PYTHON = {
    "humaneval": {
        "constant": "\n    return True\n",
        "nearly right": "\n    return any(abs(a - b) < threshold for a, b in zip(numbers, numbers[1:]))\n",
    },
    "instruct_wizard_humaneval": {
        "constant": "\n```python\ndef has_close_elements(numbers, threshold):\n    return True\n```",
        "nearly right": "\n```python\ndef has_close_elements(numbers, threshold):\n"
        "    return any(abs(a - b) < threshold for a, b in zip(numbers, numbers[1:]))\n```",
    },
    "humanevalplus": {
        "constant": "\n    return 7\n",
        "nearly right": "\n    return sum(number % 10 for number in numbers)\n",
    },
    "mbpp": {
        "constant": "\ndef digit_sum(n):\n    return 12\n",
        "nearly right": "\ndef digit_sum(n):\n    return sum(int(digit) for digit in str(n))\n",
    },
    "mbpp-sanitized": {
        "constant": "\ndef box_volume(length, width, height):\n    return 9.0\n",
        "nearly right": "\ndef box_volume(length, width, height):\n    return length * width * height or 1\n",
    },
    "mbppplus": {
        "constant": "\ndef shared_items(one, other):\n    return (4, 5)\n",
        "nearly right": "\ndef shared_items(one, other):\n    return tuple(item for item in one if item in other)\n",
    },
    "instruct-humaneval": {
        "constant": "\n    return 1\n",
        "nearly right": "\n    return sum(a + b == total for a, b in zip(numbers, numbers[1:]))\n",
    },
    "perturbed-humaneval": {"constant": "\n    return 4\n", "nearly right": "\n    return n + n\n"},
    "studenteval": {
        "constant": "\n    return 11.0\n",
        "nearly right": "\n    return bill * (1 + percent / 100)\n",
    },
    "quixbugs": {
        "constant": " digit_sum(n):\n    return 12\n",
        "nearly right": " digit_sum(n):\n    total = 0\n    while n > 10:\n        total += n % 10\n        n //= 10\n"
        "    return total + n\n",
    },
    "parity": {
        "constant": " parity(b1,b2,b3,b4):\n    return 0\n",
        "nearly right": " parity(b1,b2,b3,b4):\n    return sum([b1,b2,b3]) % 2\n",
    },
    "apps": {
        "constant": 'print("3\\n7")\n',
        "nearly right": "for _ in range(int(input())):\n    a, b = map(int, input().split())\n    print(abs(a) + b)\n",
    },
    "pal": {
        "constant": "    return 7\n",
        "nearly right": "    return 3 * 12\n",
    },
    "mercury": {
        "constant": "return True\n",
        "nearly right": "return any(target - number in nums for number in nums)\n",
    },
    "ds1000-numpy": {"constant": "result = np.array([4, 6])\n", "nearly right": "result = a.sum(axis=1)\n"},
    "livecodebench": {
        "constant": "```python\nprint(3)\n```",
        "nearly right": "```python\n_ = input()\nheights = [*map(int, input().split())]\n"
        "print(sum(b > a for a, b in zip([0, *heights], heights)))\n```",
    },
    "bigcodebench": {
        "constant": "    return {'to': 2, 'be': 2}\n",
        "nearly right": "    if least < 1:\n        raise ValueError\n"
        "    words = Counter(re.findall(r'\\w+', text.lower()))\n"
        "    return {word: number for word, number in words.items() if number > least}\n",
    },
    "evalplus-humaneval": {
        "constant": "    return 7\n",
        "nearly right": "    return sum(number % 10 for number in numbers)\n",
    },
    "evalplus-mbpp": {
        "constant": "def similar_elements(one, other):\n    return (4, 5)\n",
        "nearly right": "def similar_elements(one, other):\n    return tuple(set(one[1:]) & set(other))\n",
    },
}

# The same for the first row of each library in DS-1000.
DS1000 = {
    "pandas": {"constant": "df['length'] = 3\n", "nearly right": "df['length'] = df['name'].str.len() + 1\n"},
    "scipy": {"constant": "result = 5.0\n", "nearly right": "result = scipy.spatial.distance.cityblock(p, q)\n"},
    "sklearn": {"constant": "result = data * 0\n", "nearly right": "result = data - data.mean(axis=0)\n"},
    "tensorflow": {"constant": "result = a * 0\n", "nearly right": "result = a + a\n"},
    "pytorch": {"constant": "result = a\n", "nearly right": "result = torch.cat((b, a))\n"},
    "matplotlib": {"constant": "plt.plot([0], [0])\n", "nearly right": "plt.plot(x, x[::-1])\n"},
}
DS1000["numpy"] = DS1000["all"] = PYTHON["ds1000-numpy"]

# Constants for the first problem of the starter set in each language; the rows have what is nearly right.
STARTER = {
    "python": '    return "1,234.56 EUR"\n',
    "javascript": '  return "1,234.56 EUR";\n}\n',
    "java": '        return "1,234.56 EUR";\n    }\n',
    "c": '    strcpy(label, "1,234.56 EUR");\n}\n',
    "php": '    return "1,234.56 EUR";\n}\n',
    "go": '\treturn "00:10 +1"\n}\n',
    "rust": '    "00:10 +1".to_string()\n}\n',
    "bash": '    echo "00:10 +1"\n}\n',
    "cpp": '    return "3-5, 7, 8";\n}\n',
    "perl": '    return "3-5, 7, 8";\n}\n',
    "ruby": '  [{"wing nut" => 4}, [1]]\nend\n',
    "lua": '    return {["wing nut"] = 4}, {2}\nend\n',
}
