"""What chat models write when a function is asked for: whole files, and more or less than was asked.

MULTIPLE answers the rows of code_rows/multiple.jsonl, PACK those of code_rows/humanevalpack.jsonl; most have something
that would not compile with the tests simply put after it.
"""

from __future__ import annotations

MULTIPLE = {
    "adb": """
function Count_Above (Numbers : Integer_Array; Limit : Integer) return Integer is
   Count : Integer := 0;
begin
   for I in Numbers'Range loop
      if Numbers (I) > Limit then
         Count := Count + 1;
      end if;
   end loop;
   return Count;
end Count_Above;
""",
    "clj": """
(ns counting)

(defn count_above [numbers limit]
  (reduce (fn [n x] (if (> x limit) (inc n) n)) 0 numbers))
""",
    "cpp": """
#include <vector>
#include <iostream>
using namespace std;

bool above(long number, long limit);

long count_above(vector<long> numbers, long limit) {
  long count = 0;
  for (long number : numbers) { if (above(number, limit)) count++; }
  return count;
}

bool above(long number, long limit) { return number > limit; }  // don't }

int main() {
    cout << count_above({1, 2}, 1) << "}" << endl;
    return 0;
}
""",
    "cs": """
public static long CountAbove(List<long> numbers, long limit) {
    return numbers.Where(number => number > limit).Count();
}
""",
    "d": """
import std.stdio;
import std.algorithm;

long count_above(long[] numbers, long limit)
{
    return numbers.count!(number => number > limit);
}

void main() { writeln(count_above([1L], 0L)); }
""",
    "elixir": """
defmodule HumanEval do
  def candidate(numbers, limit), do: count_above(numbers, limit)

  def count_above(numbers, limit) do
    numbers |> Enum.filter(&(&1 > limit)) |> length()
  end
end
""",
    "go": """
package main

import (
    "fmt"
    "os"
    "sort"
)

func count_above(numbers []int, limit int) int {
    sorted := append([]int{}, numbers...)
    sort.Ints(sorted)
    return len(sorted) - sort.SearchInts(sorted, limit+1)
}

func main() { fmt.Println(count_above([]int{1}, 0), "os.Args") }
""",
    "hs": """
module Main where

import Data.List (foldl')

count_above :: [Int] -> Int -> Int
count_above numbers limit = foldl' (\\n x -> if x > limit then n + 1 else n) 0 numbers

main :: IO ()
main = do
  print (count_above [1] 0)
""",
    "java": """
import java.util.ArrayList;
import java.util.Arrays;

public class Solution {
  public static long countAbove(ArrayList<Long> numbers, long limit) {
    long count = 0;
    for (long number : numbers) {
      if (isAbove(number, limit)) {
        count++;
    }
    }
    return count;
  }

  private static boolean isAbove(long number, long limit) { return number > limit; }

  public static void main(String[] args) {
    System.out.println(countAbove(new ArrayList<>(Arrays.asList(1L, 2L)), 1));
  }
}
""",
    "js": """
function count_above(numbers, limit) {
  return numbers.filter(n => n > limit).length;
}

function main() { console.log(count_above([1], 0)); }
main();
module.exports = { count_above };
""",
    "ml": """
let rec count_above (numbers : int list) (limit : int) : int =
  match numbers with
  | [] -> 0
  | number :: rest -> (if number > limit then 1 else 0) + count_above rest limit
""",
    "php": """
function count_above($numbers, $limit) {
    $count = 0;
    foreach ($numbers as $number) { if ($number > $limit) { $count++; } }
    return $count;
}
?>
""",
    "pl": """
use strict;
use warnings;

sub count_above {
    my ($numbers, $limit) = @_;
    my $count = 0;
    for my $n (@$numbers) { $count++ if $n > $limit }
    return $count;
}

1;

__END__
""",
    "r": """
count_above <- function(numbers, limit) {
  length(Filter(function(number) number > limit, numbers))
}
""",
    "rkt": """
(define (count_above numbers limit)
  (length (filter (lambda (n) (> n limit)) numbers)))
""",
    "rs": """
use std::collections::HashMap;

fn count_above(numbers: Vec<isize>, limit: isize) -> isize {
    let mut counts: HashMap<bool, isize> = HashMap::new();
    for number in numbers {
        *counts.entry(above(number, limit)).or_insert(0) += 1;
    }
    *counts.get(&true).unwrap_or(&0)
}

fn above(number: isize, limit: isize) -> bool {
    number > limit
}

fn main() {
    println!("{}", count_above(vec![1], 0));
}
""",
    "scala": """
object Problem {
  def countAbove(numbers: List[Long], limit: Long): Long = {
    numbers.count(above(_, limit)).toLong
  }

  def above(number: Long, limit: Long): Boolean = number > limit

  def main(args: Array[String]): Unit = {
    println(countAbove(List(1L), 0L))
  }
}
""",
    "sh": """
#!/usr/bin/env bash
count_above() {
    local count=0 number
    for number in $1; do
        if above "$number" "$2"; then
            count=$((count + 1))
        fi
    done
    echo "$count"
}

above() {
    [ "$1" -gt "$2" ]
}
""",
    "ts": """
const count_above = (numbers: number[], limit: number): number => numbers.filter(n => n > limit).length;
""",
}

PACK = {
    "cpp": """
#include <iostream>
#include <vector>
using namespace std;

static int gap(int a, int b) { return a > b ? a - b : b - a; }

int largest_gap(vector<int> numbers) {
    int largest = 0;
    for (size_t i = 1; i < numbers.size(); i++) largest = max(largest, gap(numbers[i], numbers[i - 1]));
    return largest;
}

int main() {
    cout << largest_gap({1, 5, 3});
}
""",
    "go": """
package main

import (
    "fmt"
    "strings"
)

func LargestGap(numbers []float64) float64 {
    largest := 0.0
    for i := 1; i < len(numbers); i++ {
        gap := math.Abs(numbers[i] - numbers[i-1]) // strings.Builder is not needed
        if gap > largest {
            largest = gap
        }
    }
    return largest
}
""",
    "java": """
import java.util.List;

public class Solution {
    public int largestGap(List<Integer> numbers) {
        int largest = 0;
        for (int i = 1; i < numbers.size(); i++) {
            int gap = numbers.get(i) - numbers.get(i - 1);
            largest = Math.max(largest, gap < 0 ? -gap : gap);
        }
        return largest;
    }
}

public class Main {
    public static void main(String[] args) {
        System.out.println(new Solution().largestGap(List.of(1, 5, 3)));
    }
}
""",
    "js": """
function largestGap(numbers) {
  return numbers.slice(1).reduce((largest, number, i) => Math.max(largest, Math.abs(number - numbers[i])), 0);
}

console.log(largestGap([1, 5, 3]));
""",
    "python": """
def largest_gap(numbers):
    return max([abs(a - b) for a, b in zip(numbers, numbers[1:])] or [0])

if __name__ == "__main__":
    print(largest_gap([1, 5, 3]))
""",
    "rust": """
fn largest_gap(numbers: Vec<i32>) -> i32 {
    numbers.windows(2).map(|pair| (pair[1] - pair[0]).abs()).fold(0, max)
}

fn main() {
    println!("{}", largest_gap(vec![1, 5, 3]));
}
""",
}
