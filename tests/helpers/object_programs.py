"""Programs whose objects are used by their tests: right ones, and ones that only claim to be right."""

from __future__ import annotations

OBJECTS = {
    "operator overloads": (
        """
        class V:
            def __init__(s,x,y): s.x,s.y=x,y
            def __add__(s,o): return V(s.x+o.x,s.y+o.y)
            def __eq__(s,o): return (s.x,s.y)==(o.x,o.y)
            def __hash__(s): return hash((s.x,s.y))
            def __repr__(s): return f'V({s.x},{s.y})'
        """,
        """
        assert V(1,2)+V(3,4)==V(4,6)
        assert repr(V(1,2))=='V(1,2)'
        """,
    ),
    "context manager": (
        """
        import contextlib
        log=[]
        @contextlib.contextmanager
        def cm():
            log.append('in')
            try: yield 5
            finally: log.append('out')
        """,
        """
        with cm() as x:
            assert x==5
        assert log==['in','out']
        """,
    ),
    "decorators with wraps": (
        """
        import functools
        def deco(fn):
            @functools.wraps(fn)
            def w(*a,**k): return fn(*a,**k)+1
            return w
        @deco
        def f(x): 'doc'; return x
        """,
        """
        assert f(1)==2
        assert f.__name__=='f'
        assert f.__doc__=='doc'
        """,
    ),
    "property and slots": (
        """
        class T:
            __slots__=('_c',)
            def __init__(s,c): s._c=c
            @property
            def f(s): return s._c*9/5+32
            @f.setter
            def f(s,v): s._c=(v-32)*5/9
        """,
        """
        t=T(100)
        assert t.f==212
        t.f=32
        assert abs(t._c)<1e-9
        """,
    ),
    "subclasses of builtins": (
        """
        class L(list):
            def total(self): return sum(self)
        class D(dict):
            def __missing__(self,k): return k*2
        """,
        """
        assert L([1,2]).total()==3
        assert D()[4]==8
        assert L([1])==[1]
        """,
    ),
    "named tuple constructed": (
        """
        from collections import namedtuple
        P=namedtuple('P','x y')
        """,
        """
        p=P(1,2)
        assert p.x==1 and p==(1,2) and p[1]==2
        a,b=p
        assert b==2
        assert p._replace(x=5).x==5
        """,
    ),
    "named tuple returned": (
        """
        from typing import NamedTuple
        class P(NamedTuple):
            x:int
            y:int=0
        def f(): return [P(1,2),P(3)]
        """,
        """
        r=f()
        assert r==[(1,2),(3,0)]
        assert r[0].y==2 and r[1].x==3
        assert sorted(r)[0]==(1,2)
        assert len(set(r))==2
        """,
    ),
    "enum": (
        """
        import enum
        class C(enum.Enum):
            RED=1
            BLUE=2
        def f(): return C.RED
        """,
        """
        assert f()==C.RED
        assert f() is not None
        assert C.RED.name=='RED'
        assert f().value==1
        assert C(2)==C.BLUE
        assert [c.name for c in C]==['RED','BLUE']
        """,
    ),
    "int enum": (
        """
        import enum
        class C(enum.IntEnum):
            A=1
            B=2
        def f(): return C.B
        """,
        """
        assert f()==2
        assert f().name=='B'
        assert C.A<C.B
        """,
    ),
    "stack from list": (
        """
        class Stack(list):
            def push(self,x): self.append(x)
            def peek(self): return self[-1]
            def is_empty(self): return not self
        """,
        """
        s=Stack()
        assert s.is_empty()
        s.push(1); s.push(2)
        assert s.peek()==2 and len(s)==2
        assert s==[1,2]
        assert s.pop()==2
        assert 1 in s
        s.append(7)
        assert list(s)==[1,7]
        """,
    ),
    "dict with attributes": (
        """
        class A(dict):
            def __getattr__(self,n): return self[n]
            def __missing__(self,k): return k*2
        def f(): return A(x=1)
        """,
        """
        a=A()
        a['k']=3
        assert a.k==3 and a==  {'k':3} and a[4]==8
        assert f()=={'x':1}
        """,
    ),
    "str subclass": (
        """
        class S(str):
            def shout(self): return self.upper()+'!'
        """,
        """
        s=S('a')
        assert s=='a' and s.shout()=='A!' and s+'b'=='ab'
        """,
    ),
    "money": (
        """
        import functools
        @functools.total_ordering
        class Money:
            def __init__(s,c): s.c=c
            def __eq__(s,o): return s.c==o.c
            def __lt__(s,o): return s.c<o.c
            def __mul__(s,n): return Money(s.c*n)
            __rmul__=__mul__
            def __neg__(s): return Money(-s.c)
            def __hash__(s): return hash(s.c)
            def __str__(s): return f'{s.c/100:.2f}'
            def __int__(s): return s.c
            def __add__(s,o): return Money(s.c+o.c)
            def __iadd__(s,o): s.c+=o.c; return s
            def __format__(s,spec): return format(s.c,spec)
        """,
        """
        m=Money(5)
        assert m*3==Money(15) and 3*m==Money(15)
        assert (m*3).c==15
        assert -m==Money(-5)
        assert str(m)=='0.05' and int(m)==5 and f'{m:03d}'=='005'
        assert Money(1)<Money(2)<=Money(2)
        assert max(Money(1),Money(9)).c==9
        assert sorted([Money(3),Money(1)])[0]==Money(1)
        assert len({Money(1),Money(1),Money(2)})==2
        m+=Money(1)
        assert m.c==6
        """,
    ),
    "matrix": (
        """
        class M:
            def __init__(s,r): s.r=[list(x) for x in r]
            def __matmul__(s,o): return M([[sum(a*b for a,b in zip(x,y)) for y in zip(*o.r)] for x in s.r])
            def __getitem__(s,k): return s.r[k[0]][k[1]]
            def __setitem__(s,k,v): s.r[k[0]][k[1]]=v
            def __delitem__(s,k): s.r[k[0]][k[1]]=0
            def __eq__(s,o): return s.r==o.r
            def __abs__(s): return 7
            def __len__(s): return len(s.r)
            def __bool__(s): return True
        """,
        """
        a=M([[1,2],[3,4]])
        assert (a@M([[1,0],[0,1]]))==a
        a[0,1]=9
        assert a[0,1]==9
        del a[0,1]
        assert a[0,1]==0
        assert abs(a)==7 and len(a)==2 and a
        """,
    ),
    "context manager class": (
        """
        class Tx:
            def __init__(s): s.log=[]
            def __enter__(s): s.log.append('in'); return s
            def __exit__(s,t,e,tb):
                s.log.append(t.__name__ if t else None)
                return t is KeyError
        """,
        """
        t=Tx()
        with t as x:
            x.log
        assert t.log==['in',None]
        with t:
            raise KeyError('a')
        assert t.log[-1]=='KeyError'
        try:
            with t:
                raise ValueError('b')
            assert False
        except ValueError: pass
        """,
    ),
    "counter of calls": (
        """
        calls=0
        seen=[]
        def f(x):
            global calls
            calls+=1
            seen.append(x)
            return x
        """,
        """
        assert calls==0
        f(1);f(2)
        assert calls==2
        assert seen==[1,2]
        """,
    ),
    "dataclass order": (
        """
        from dataclasses import dataclass,field
        @dataclass(order=True,frozen=True)
        class P:
            a:int
            b:list=field(default_factory=list,compare=False)
        """,
        """
        assert P(1)<P(2)
        assert P(1)==P(1,[3])
        assert repr(P(1))=='P(a=1, b=[])'
        assert {P(1):2}[P(1)]==2
        assert P(1).b==[]
        """,
    ),
    "class attributes": (
        """
        class A:
            n=0
            def __init__(s): A.n+=1
            @classmethod
            def make(c): return c()
            @staticmethod
            def s(x): return x*2
        """,
        """
        A.make(); A()
        assert A.n==2
        assert A.s(3)==6
        A.n=10
        assert A.make().n==11
        """,
    ),
    "iterator class": (
        """
        class R:
            def __init__(s,n): s.n=n
            def __iter__(s):
                i=0
                while i<s.n:
                    yield i
                    i+=1
            def __reversed__(s): return iter([2,1,0])
            def __contains__(s,x): return 0<=x<s.n
        """,
        """
        assert list(R(3))==[0,1,2]
        assert 2 in R(3)
        assert list(reversed(R(3)))==[2,1,0]
        assert sum(R(4))==6
        """,
    ),
    "contains of its own": (
        """
        class Trie:
            def __init__(s): s.w=set()
            def insert(s,x): s.w.add(x)
            def __contains__(s,x): return x in s.w
        """,
        """
        t=Trie()
        t.insert('ab')
        assert 'ab' in t
        assert 'b' not in t
        """,
    ),
    "callable instance": (
        """
        class Adder:
            def __init__(s,n): s.n=n
            def __call__(s,x): return s.n+x
        """,
        """
        assert Adder(2)(3)==5
        assert callable(Adder(1))
        assert list(map(Adder(1),[1,2]))==[2,3]
        """,
    ),
    "equals a number": (
        """
        class Frac:
            def __init__(s,a,b): s.a,s.b=a,b
            def __eq__(s,o): return s.a/s.b==(o.a/o.b if isinstance(o,Frac) else o)
            def __add__(s,o): return Frac(s.a*o.b+o.a*s.b,s.b*o.b)
            def __float__(s): return s.a/s.b
        """,
        """
        assert Frac(1,2)+Frac(1,2)==Frac(1,1)
        assert float(Frac(1,4))==0.25
        """,
    ),
    "derived value handed back": (
        """
        from collections import namedtuple
        import enum
        P=namedtuple('P','x y')
        class C(enum.IntEnum):
            A=1
        def make(): return [P(1,2)]
        def norm(p): return p.x**2+p.y**2
        def name(c): return c.name
        def get(): return C.A
        """,
        """
        assert norm(make()[0])==5
        assert norm(P(3,4))==25
        assert name(get())=='A'
        assert name(C.A)=='A'
        """,
    ),
    "module level main and argv": (
        """
        import sys
        def f(): return 3
        def main(argv=None):
            print(f())
            return 0
        if __name__=='__main__':
            sys.exit(main())
        """,
        "assert f()==3",
    ),
}

REACHING_IN = {
    "async function for the tests": (
        """
        import asyncio
        async def f(x):
            await asyncio.sleep(0.001)
            return x*2
        """,
        """
        import asyncio
        assert asyncio.run(f(4))==8
        """,
    ),
    "stdout captured by tests": (
        "def f(): print('hello')",
        """
        import io,contextlib
        b=io.StringIO()
        with contextlib.redirect_stdout(b):
            f()
        assert b.getvalue()=='hello\\n'
        """,
    ),
    "tests patch a module": (
        """
        import os
        def f(): return os.getcwd()
        """,
        """
        from unittest.mock import patch
        with patch('os.getcwd', return_value='/x'):
            assert f()=='/x'
        """,
    ),
    "tests replace stdout": (
        "def f(): print('a')",
        """
        import sys,io
        old=sys.stdout
        sys.stdout=b=io.StringIO()
        f()
        sys.stdout=old
        assert b.getvalue()=='a\\n'
        """,
    ),
    "tests feed stdin": (
        "def f(): return int(input())+1",
        """
        import sys,io
        sys.stdin=io.StringIO('4')
        assert f()==5
        """,
    ),
    "tests patch input": (
        "def f(): return input()+'!'",
        """
        from unittest import mock
        with mock.patch('builtins.input',return_value='q'):
            assert f()=='q!'
        """,
    ),
    "tests use magic mock": (
        "def f(c): return c.get('x')+1",
        """
        from unittest.mock import MagicMock
        c=MagicMock()
        c.get.return_value=2
        assert f(c)==3
        c.get.assert_called_once_with('x')
        """,
    ),
    "async class": (
        """
        class S:
            async def __aenter__(s): return s
            async def __aexit__(s,*a): pass
            async def get(s): return 4
        """,
        """
        import asyncio
        async def main():
            async with S() as s:
                assert await s.get()==4
        asyncio.run(main())
        """,
    ),
}
