// The window of rows, without a browser: what is fetched next, what is let go, what new rows change.
import assert from "node:assert/strict"
import test from "node:test"
import { compiled } from "./compiled.mjs"

const { caughtUp, chunk, endOf, grown, has, hasEnd, indexOf, missing, most, shownNear, stepped, windowOf } = await compiled("window")

const row = (i, html = `<p>${i}`) => ({ index: i, entry: { id: `e${i}` }, kind: "user", gist: "", html })
const answer = (from, count, total, make = row) => ({ session: "s", leaf: "l", total, from, rows: Array.from({ length: Math.max(0, Math.min(count, total - from)) }, (_, k) => make(from + k)) })
const whole = (w) => w.rows.forEach((r, k) => assert.equal(r.index, w.from + k))

test("a window grows at one end and stays small", () => {
  let w = windowOf(answer(500, 60, 1000))
  for (const down of [true, true, true, true, true, false, false, false, false, false, false, false]) {
    const next = missing(w, down)
    assert.equal(next.count, chunk)
    w = grown(w, answer(next.from, next.count, 1000), down)
    whole(w)
    assert.ok(w.rows.length <= most)
    assert.ok(has(w, down ? next.from + next.count - 1 : next.from), "what was fetched is there")
  }
})

test("at its ends there is nothing to fetch", () => {
  const w = windowOf(answer(0, 60, 40))
  assert.equal(missing(w, true), undefined)
  assert.equal(missing(w, false), undefined)
  assert.deepEqual(missing(windowOf(answer(10, 60, 100)), false), { from: 0, count: 10 })
  assert.ok(hasEnd(w) && endOf(w) === 40)
})

test("what is appended comes to the end", () => {
  const w = windowOf(answer(0, 30, 30)), next = caughtUp(w, answer(29, 30, 33), false)
  whole(next)
  assert.equal(next.rows.length, 33)
  assert.equal(next.rows[29], w.rows[29], "a row that has not changed is the same one")
  const changed = caughtUp(w, answer(29, 30, 30, (i) => row(i, "<p>more")), false)
  assert.equal(changed.rows[29].html, "<p>more")
})

test("one who reads elsewhere keeps what he reads", () => {
  const w = windowOf(answer(0, 30, 100)), next = caughtUp(w, answer(100, 30, 102), false)
  assert.deepEqual(next.rows, w.rows)
  assert.equal(next.total, 102)
  const long = windowOf(answer(0, most, most))
  assert.equal(caughtUp(long, answer(most - 1, 30, most + 5), false).from, 0)
  const followed = caughtUp(long, answer(most - 1, 30, most + 5), true)
  whole(followed)
  assert.deepEqual([followed.from, followed.rows.length], [5, most])
})

test("another branch is noticed", () => {
  assert.equal(caughtUp(windowOf(answer(0, 30, 30)), answer(29, 30, 31, (i) => ({ ...row(i), entry: { id: `other${i}` } })), true), undefined)
})

test("an empty conversation begins", () => {
  const w = windowOf(answer(0, 30, 0))
  assert.deepEqual(caughtUp(w, answer(0, 30, 0), true).rows, [])
  whole(caughtUp(w, answer(0, 30, 2), true))
  assert.equal(caughtUp(w, answer(0, 30, 2), true).rows.length, 2)
})

test("rows that show nothing are passed over", () => {
  const w = windowOf(answer(10, 10, 100, (i) => row(i, i % 3 ? "" : `<p>${i}`))) // 12, 15 and 18 show something
  assert.equal(stepped(w, 12, 1), 15)
  assert.equal(stepped(w, 15, -1), 12)
  assert.equal(stepped(w, 18, 1), 20, "beyond the window one does not know")
  assert.equal(stepped(windowOf(answer(0, 5, 5)), 4, 1), undefined)
  assert.equal(stepped(windowOf(answer(0, 5, 5)), 0, -1), undefined)
  assert.equal(shownNear(w.rows, 17), 15)
  assert.equal(shownNear(w.rows, 10), 12)
  assert.equal(indexOf(answer(10, 10, 100), "e15"), 15)
})
