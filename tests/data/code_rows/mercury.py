"""Where the BigCode harness has the worked example of its task of this name; this one is invented."""


def prompt_generate(question: str, code: str) -> list[dict[str, str]]:
    example = {
        "question": "Given a number, return it.",
        "sample_code": "class Solution(object):\n    def same(self, n: int) -> int:\n        ",
        "answer": "class Solution(object):\n    def same(self, n: int) -> int:\n        return n",
    }
    return [example, {"question": question, "sample_code": code, "answer": ""}]
