"""A small honest program in every language: it greets, fails, eats memory or loops, as its first word of input says.

Where the language has a test library that benchmarks use, the program uses it too.
"""

PROGRAMS = {
    "python": r"""import sys
verb, name = sys.stdin.readline().split()
if verb == "greet":
    print(f"Hello, {name}!")
elif verb == "fail":
    raise ValueError(name)
elif verb == "eat":
    hoard = []
    while True:
        hoard.append(bytearray(10**6))
else:
    while True:
        pass
""",
    "javascript": r"""const [verb, name] = require("fs").readFileSync(0, "utf8").trim().split(" ");
if (verb === "greet") console.log(`Hello, ${name}!`);
else if (verb === "fail") console.assert(name === "");
else if (verb === "eat") { const hoard = []; for (;;) hoard.push(new Array(10000).fill(hoard.length)); }
else for (;;);
""",
    "typescript": r"""declare var require: any;
const [verb, person]: string[] = require("fs").readFileSync(0, "utf8").trim().split(" ");
if (verb === "greet") console.log(`Hello, ${person}!`);
else if (verb === "fail") console.assert(person === "");
else if (verb === "eat") { const hoard: number[][] = []; for (;;) hoard.push(new Array(10000).fill(hoard.length)); }
else for (;;);
""",
    "java": r"""import java.util.*;
import org.javatuples.*;

class Problem {
    public static void main(String[] args) {
        Scanner input = new Scanner(System.in);
        Pair<String, String> words = Pair.with(input.next(), input.next());
        List<byte[]> hoard = new ArrayList<>();
        switch (words.getValue0()) {
            case "greet": System.out.println("Hello, " + words.getValue1() + "!"); break;
            case "fail": assert words.getValue1().equals(""); break;
            case "eat": for (;;) hoard.add(new byte[1000000]);
            default: for (;;);
        }
    }
}
""",
    "c": r"""#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void) {
    char verb[80], name[80];
    if (scanf("%79s %79s", verb, name) != 2) return 2;
    if (!strcmp(verb, "greet")) printf("Hello, %s!\n", name);
    else if (!strcmp(verb, "fail")) abort();
    else if (!strcmp(verb, "eat")) for (;;) {
        char *block = malloc(1000000);
        if (!block) { perror(name); return 1; }
        memset(block, 1, 1000000);
    }
    else for (;;);
}
""",
    "cpp": r"""#include<assert.h>
#include<bits/stdc++.h>
int main() {
    std::string verb, name;
    std::cin >> verb >> name;
    if (verb == "greet") std::cout << "Hello, " << name << "!" << std::endl;
    else if (verb == "fail") assert(name == "");
    else if (verb == "eat") { std::vector<std::string> hoard; for (;;) hoard.emplace_back(1000000, 'x'); }
    else for (volatile int i = 0;;) i = i + 1;
}
""",
    "rust": r"""use std::io;
fn main() {
    let mut line = String::new();
    io::stdin().read_line(&mut line).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[0] {
        "greet" => println!("Hello, {}!", words[1]),
        "fail" => panic!("{}", words[1]),
        "eat" => { let mut hoard = Vec::new(); loop { hoard.push(vec![1u8; 1_000_000]); } }
        _ => loop { std::hint::spin_loop(); },
    }
}
""",
    "rust-test": r"""fn main() {}

#[cfg(test)]
mod tests {
    #[test]
    fn greets() {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[0] {
            "greet" => println!("Hello, {}!", words[1]),
            "fail" => assert_eq!(1, 2),
            "eat" => { let mut hoard = Vec::new(); loop { hoard.push(vec![1u8; 1_000_000]); } }
            _ => loop { std::hint::spin_loop(); },
        }
    }
}
""",
    "go": r"""package main

import "fmt"

func main() {
	var verb, name string
	fmt.Scan(&verb, &name)
	switch verb {
	case "greet":
		fmt.Printf("Hello, %s!\n", name)
	case "fail":
		panic(name)
	case "eat":
		var hoard [][]byte
		for {
			hoard = append(hoard, make([]byte, 1000000))
		}
	default:
		for {
		}
	}
}
""",
    "go-test": r"""package greeting_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestGreeting(t *testing.T) {
	var verb, name string
	fmt.Scan(&verb, &name)
	switch verb {
	case "greet":
		fmt.Printf("Hello, %s!\n", name)
	case "fail":
		assert.Equal(t, 1, 2)
	case "eat":
		var hoard [][]byte
		for {
			hoard = append(hoard, make([]byte, 1000000))
		}
	default:
		for {
		}
	}
}
""",
    "php": r"""<?php
[$verb, $name] = explode(" ", trim(fgets(STDIN)));
if ($verb === "greet") echo "Hello, $name!\n";
elseif ($verb === "fail") assert($name === "");
elseif ($verb === "eat") { $hoard = []; while (true) $hoard[] = str_repeat("x", 1000000); }
else while (true);
""",
    "ruby": r"""require "test/unit"
class Greeting < Test::Unit::TestCase
  def test_greeting
    verb, name = $stdin.gets.split
    case verb
    when "greet" then puts "Hello, #{name}!"
    when "fail" then assert_equal("", name)
    when "eat"
      hoard = []
      loop { hoard << "x" * 1_000_000 }
    else
      loop {}
    end
  end
end
""",
    "lua": r"""lu = require("luaunit")
local verb, name = io.read("l"):match("(%S+) (%S+)")
local block, hoard = ("x"):rep(1000), {}
while verb == "eat" do hoard[#hoard + 1] = block:rep(10000 + #hoard) end
while verb == "loop" do end
function test_greeting()
  if verb == "greet" then print("Hello, " .. name .. "!") end
  if verb == "fail" then lu.assertEquals(name, "") end
end
os.exit(lu.LuaUnit.run())
""",
    "perl": r"""use strict; use warnings;
use Test::Deep;
my ($verb, $name) = split ' ', <STDIN>;
if ($verb eq "greet") { print "Hello, $name!\n" }
elsif ($verb eq "fail") { exit 1 unless eq_deeply([$name], [""]) }
elsif ($verb eq "eat") { my @hoard; while (1) { push @hoard, "x" x 1000000 } }
else { while (1) {} }
""",
    "bash": r"""read -r verb name
case $verb in
greet) echo "Hello, $name!" ;;
fail) exit 1 ;;
eat) hoard=x; while true; do hoard=$hoard$hoard; done ;;
*) while true; do :; done ;;
esac
""",
    "r": r"""words <- strsplit(readLines(file("stdin"), 1), " ")[[1]]
if (words[1] == "greet") {
  cat("Hello, ", words[2], "!\n", sep = "")
} else if (words[1] == "fail") {
  stopifnot(identical(words[2], ""))
} else if (words[1] == "eat") {
  hoard <- list()
  repeat hoard[[length(hoard) + 1]] <- numeric(100000) + 1
} else {
  repeat {}
}
""",
    "racket": r"""#lang racket
(require rackunit)
(match (string-split (read-line))
  [(list "greet" name) (printf "Hello, ~a!\n" name)]
  [(list "fail" name) (check-equal? name "")]
  [(list "eat" _) (let loop ([hoard '()]) (loop (cons (make-bytes 1000000 1) hoard)))]
  [_ (let loop () (loop))])
""",
    "scala": r"""import scala.io.StdIn
object Problem {
  def main(args: Array[String]) = {
    val Array(verb, name) = StdIn.readLine().split(" ")
    verb match {
      case "greet" => println(s"Hello, $name!")
      case "fail" => assert(false, name)
      case "eat" => var hoard = List[Array[Byte]](); while (true) hoard = new Array[Byte](1000000) :: hoard
      case _ => while (true) {}
    }
  }
}
""",
    "kotlin": r"""fun main() {
    val (verb, name) = readLine()!!.split(" ")
    when (verb) {
        "greet" -> println("Hello, $name!")
        "fail" -> assert(name == "")
        "eat" -> { val hoard = ArrayList<ByteArray>(); while (true) hoard.add(ByteArray(1000000)) }
        else -> while (true) {}
    }
}
""",
    "clojure": r"""(require '[clojure.test :refer [deftest is run-test]])
(require '[clojure.string :as string])
(def words (string/split (read-line) #" "))
(deftest greeting
  (case (first words)
    "greet" (println (str "Hello, " (second words) "!"))
    "fail" (is (= (second words) ""))
    "eat" (loop [hoard []] (recur (conj hoard (byte-array 1000000))))
    (loop [] (recur))))
(run-test greeting)
""",
    "csharp": r"""using System;
using System.Collections.Generic;
using System.Diagnostics;

class Problem {
    public static void Main(string[] args) {
        var words = Console.ReadLine().Split(' ');
        var hoard = new List<byte[]>();
        switch (words[0]) {
            case "greet": Console.WriteLine("Hello, " + words[1] + "!"); break;
            case "fail": Debug.Assert(words.Length == 0); break;
            case "eat": for (;;) hoard.Add(new byte[1000000]);
            default: for (;;);
        }
    }
}
""",
    "d": r"""import std.stdio, std.string;

unittest
{
    auto words = readln().split();
    ubyte[][] hoard;
    switch (words[0]) {
        case "greet": writefln("Hello, %s!", words[1]); break;
        case "fail": assert(words[1] == ""); break;
        case "eat": for (;;) hoard ~= new ubyte[](1_000_000);
        default: for (;;) {}
    }
}
void main(){}
""",
    "haskell": r"""import qualified Data.ByteString as Bytes
main :: IO ()
main = do
  line <- getLine
  case words line of
    ["greet", name] -> putStrLn ("Hello, " ++ name ++ "!")
    ["fail", name] -> error name
    ["eat", _] -> eat []
    _ -> loop 1
eat :: [Bytes.ByteString] -> IO ()
eat hoard = do
  let block = Bytes.replicate (1000000 + length hoard) 120
  if Bytes.last block == 0 then print hoard else eat (block : hoard)
loop :: Int -> IO ()
loop n = if n < 0 then return () else loop (n + 1)
""",
    "ocaml": r"""let () =
  Scanf.scanf "%s %s" (fun verb name ->
    match verb with
    | "greet" -> Printf.printf "Hello, %s!\n" name
    | "fail" -> assert (name = "")
    | "eat" -> let hoard = ref [] in while true do hoard := Bytes.make 1000000 'x' :: !hoard done
    | _ -> while true do () done)
""",
    "elixir": r"""ExUnit.start()

defmodule GreetingTest do
  use ExUnit.Case

  test "greeting" do
    [verb, name] = IO.gets("") |> String.split()
    act(verb, name)
  end

  defp act("greet", name), do: IO.puts("Hello, #{name}!")
  defp act("fail", name), do: assert(name == "")
  defp act("eat", _), do: eat([])
  defp act(_, _), do: loop()
  defp eat(hoard), do: eat([:binary.copy(<<0::8000>>, 10_000) | hoard])
  defp loop, do: loop()
end
""",
    "ada": r"""with Ada.Text_IO; use Ada.Text_IO;
procedure Main is
   Line : constant String := Get_Line;
   Verb : constant String := Line (1 .. 4);
   type Block is array (1 .. 1_000_000) of Character;
   type Link is access Block;
   Hoard : Link;
begin
   if Verb = "gree" then
      Put_Line ("Hello, " & Line (7 .. Line'Last) & "!");
   elsif Verb = "fail" then
      pragma Assert (Line'Length = 0);
   elsif Verb = "eat " then
      loop
         Hoard := new Block'(others => 'x');
      end loop;
   else
      loop
         null;
      end loop;
   end if;
end Main;
""",
    "julia": r"""verb, name = split(readline())
if verb == "greet"
    println("Hello, $name!")
elseif verb == "fail"
    @assert name == ""
elseif verb == "eat"
    hoard = []
    while true
        push!(hoard, ones(UInt8, 1000000))
    end
else
    while true
    end
end
""",
    "swift": r"""let words = readLine()!.split(separator: " ")
var hoard: [[UInt8]] = []
switch words[0] {
case "greet": print("Hello, \(words[1])!")
case "fail": precondition(words[1] == "")
case "eat": while true { hoard.append([UInt8](repeating: 1, count: 1000000)) }
default: while true {}
}
""",
    "dart": r"""import 'dart:io';
import 'dart:typed_data';

void main() {
  final words = stdin.readLineSync()!.split(' ');
  final hoard = <Uint8List>[];
  if (words[0] == 'greet') print('Hello, ${words[1]}!');
  else if (words[0] == 'fail') throw words[1];
  else if (words[0] == 'eat') while (true) hoard.add(Uint8List(1000000));
  else while (true) {}
}
""",
}
