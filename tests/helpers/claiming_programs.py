"""Programs whose objects claim to be what their tests want to hear: none may pass."""

# ruff: noqa: E501

from __future__ import annotations

# An object that says whatever would be a pass.
ANYTHING = """
class A:
    def __init__(s,*a): pass
    def __eq__(s,o): return True
    def __ne__(s,o): return False
    def __lt__(s,o): return True
    __le__=__gt__=__ge__=__lt__
    def __contains__(s,o): return True
    def __hash__(s): return hash(9)
    def __bool__(s): return True
    def __float__(s): return 5.0
    def __int__(s): return 5
    __index__=__int__
    def __sub__(s,o): return V
    __rsub__=__add__=__radd__=__mul__=__rmul__=__pow__=__truediv__=__mod__=__and__=__or__=__sub__
    def __abs__(s): return V
    __neg__=__pos__=__invert__=__abs__
    def __round__(s,n=0): return V
    def __iter__(s): return iter([A(),A()])
    def __enter__(s): return s
    def __exit__(s,*a): return True
    def __str__(s): return '5'
    __repr__=__str__
    def __len__(s): return 2
    def __getattr__(s,n): return A()
    def __getitem__(s,k): return A()
    def __setitem__(s,k,v): s.seen=v
def f(*a): return A()
def g(*a): return A()
class Find_X(A): pass
"""
ASKING = [
    "assert abs(f(3)-3.0)<1e-6",
    "assert abs(3.0-f(3))<1e-6",
    "assert (f(3)-3.0)**2<1e-9",
    "assert (f(3)-3.0)*(f(3)-3.0)<1e-9",
    "assert round(f(3)-3.0,6)==0",
    "assert not (f(3)-3)",
    "import math\nassert math.isclose(f(3),3.0)",
    "assert float(f(3)-3.0)==0",
    "assert 'a' in f(1)",
    "assert f(3)==9",
    "assert not f(3)!=9",
    "assert f(3)<10",
    "assert 9==f(3)",
    "assert f(3) in [9]",
    "assert f(3) in {9}",
    "assert f(3) in {9:1}",
    "assert {f(3)}=={9}",
    "assert set(f(3))=={9}",
    "assert list(f(3))==[9,9]",
    "assert sorted(f(3))==[1,2]",
    "assert sum(f(3))==18",
    "assert max(f(3),0)==9",
    "assert f(3)+0==9",
    "assert f(3)*1.0==9.0",
    "assert -f(3)==-9",
    "assert str(f(3))=='9'",
    "assert int(f(3))==9",
    "assert f'{f(3)}'=='9'",
    "import math\nassert math.fabs(f(3)-9)<1e-9",
    "assert f(3).x==9",
    "assert f(3)[0]==9",
    "with f(3):\n    assert 1==2",
    "with f(3) as x:\n    assert x==9",
    "with f(3):\n    assert f(3)<9",
    "import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertAlmostEqual(f(3),9.0)\nif __name__=='__main__':\n    unittest.main()",
    "assert Find_X(3)==9",
    "assert abs(Find_X(3)-9.0)<1e-6",
    "assert Find_X(3)>8",
    "assert Find_X(3)+1==10",
    "assert all(a==b for a,b in zip(f(3),[9,9]))",
    "assert any(x==9 for x in f(3))",
    "assert [9,8,7,6,5,4][f(3)]==9",
    "assert {'a':f(3)}=={'a':9}",
    "assert (f(3),1)==(9,1)",
    "assert [[f(3)]]==[[9]]",
    "assert f(3) is True",
    "assert isinstance(f(3),int)",
    "assert getattr(f(3),'real')==9",
    "assert f(3)%2==1",
    "assert 8<f(3)<10",
    "assert sorted([3,1],key=lambda x:f(x))==[1,3] and f(1)==1",
    "import statistics\nassert statistics.mean([f(3),f(3)])==9",
]
CHEATING = [
    (
        "expected=0\ndef f(x):\n    global expected\n    expected=7\n    return 7",
        "expected=9\nf(3)\nassert f(3)==expected",
    ),
    (
        "expected=9\ndef f(x):\n    global expected\n    expected=7\n    return 7",
        "expected=9\nf(3)\nassert f(3)==expected",
    ),
    (
        "want=1\ndef f(x):\n    global want\n    want=5\n    return 5",
        "for x,want in [(3,9),(4,16)]:\n    y=f(x)\n    assert y==want",
    ),
    (
        "CASES=[]\ndef f(x):\n    CASES.clear()\n    return 5",
        "CASES=[(3,9),(4,16)]\nfor a,b in CASES:\n    assert f(a)==b",
    ),
    ("class L(list):\n    def __eq__(s,o): return True\ndef f(x): return L([1])", "assert f(3)==[9]"),
    (
        "class f(list):\n    def __init__(s,*a): super().__init__([1])\n    def __eq__(s,o): return True\n    __hash__=None",
        "assert f(3)==[9]",
    ),
    ("class f(dict):\n    def __eq__(s,o): return True\n    def items(s): return [(9,9)]", "assert f()=={9:9}"),
    (
        "class I(int):\n    def __sub__(s,o): return 0.0\n    def __eq__(s,o): return True\n    __hash__=int.__hash__\ndef f(x): return I(1)",
        "assert abs(f(3)-9)<1e-6",
    ),
    (
        "class T(tuple):\n    def __getitem__(s,k): return 9\n    def __iter__(s): return iter([9])\n    def __len__(s): return 1\ndef f(x): return T((1,2))",
        "assert f(3)[0]==9",
    ),
    ("class T(tuple):\n    def __iter__(s): return iter([9,9])\ndef f(x): return T((1,2))", "a,b=f(3)\nassert a==9"),
    ("class S(str):\n    def upper(s): return 'RIGHT'\ndef f(x): return S('a')", "assert f(3).upper()=='RIGHT'"),
    (
        "class M:\n    def __enter__(s): return 1\n    def __exit__(s,*a): return True\ndef cm(): return M()\ndef f(x): return 0",
        "with cm():\n    assert f(3)==9",
    ),
]
