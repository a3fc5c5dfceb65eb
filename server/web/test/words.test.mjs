// What numbers are called, without a browser: as in the terminal (render/words_test.go).
import assert from "node:assert/strict"
import test from "node:test"
import { compiled } from "./compiled.mjs"

const { cost, counted, money, narrow, short } = await compiled("words")

test("numbers have the units of the terminal", () => {
  const numbers = { 950: "950", 1234: "1.2k", 4045: "4.0k", 99_960: "100k", 200_500: "201k", 999_700: "1.0M", 52_206_525: "52.2M", 1_040_000_000: "1.0B", 2_500_000_000_000: "2.5T" }
  for (const [n, said] of Object.entries(numbers)) assert.equal(short(+n), said)
  assert.equal(short(0), "0")
  assert.equal(counted(1, "day"), "1 day")
  assert.equal(counted(1234, "day"), "1,234 days")
})

test("money is what is known of it", () => {
  for (const [micro, said] of [[0, "$0"], [99, "<$0.0001"], [1200, "$0.0012"], [3_400_000, "$3.40"]]) assert.equal(money(micro), said)
  const spent = (cost_micro_usd, unpriced_responses) => ({ cost_micro_usd, unpriced_responses, recorded: 0 })
  assert.deepEqual([cost(spent(0, 1)), cost(spent(0, 0)), cost(spent(1_200_000, 1))], ["cost unknown", "$0", "at least $1.20"])
  assert.deepEqual([narrow(spent(0, 1)), narrow(spent(0, 0)), narrow(spent(1_200_000, 1))], ["?", "$0", "≥ $1.20"])
})
