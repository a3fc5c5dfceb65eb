// A turn as its events come, and runs of calls, without a browser.
import assert from "node:assert/strict"
import test from "node:test"
import { compiled } from "./compiled.mjs"

const { begun, ended, heard, idle, isAhead, unshown } = await compiled("turn")
const { didWords, failedIn, runsOf } = await compiled("runs")

let number = 0
const event = (type, more = {}) => ({ type, number: ++number, session: "s", ...more })
const after = (t, ...events) => events.reduce(heard, t)
const text = (text) => event("message_update", { update: { type: "text", text } })
const logged = (id, role) => event("message_end", { entry: { id, message: { role } } })

test("one's own message and the answer stay until they are among the rows", () => {
  let t = begun("Hello", 0)
  assert.deepEqual(t.said, { text: "Hello", files: 0 })
  t = after(t, event("turn_start", { facts: { provider: "p", model: "m" } }), logged("e1", "user"), event("message_start"), text("I "), text("hear"))
  assert.equal(t.session, "s")
  assert.equal(t.answer.text, "I hear")
  const shown = new Set()
  const isShown = (id) => shown.has(id)
  assert.equal(unshown(t, isShown), t, "nothing changes")
  shown.add("e1")
  t = unshown(t, isShown)
  assert.equal(t.said, undefined)
  t = after(t, logged("e2", "assistant"), event("turn_end"))
  assert.ok(!t.on && t.answer.text === "I hear", "it is not among the rows yet")
  shown.add("e2")
  assert.equal(unshown(t, isShown).answer, undefined)
})

test("a row that comes before its event is not shown beside the answer that arrives", () => {
  const t = after(begun("Hello", 0), event("turn_start"), logged("own", "user"), event("message_start"), text("I"))
  const ids = ["before", "own", "new"]
  assert.deepEqual(ids.map((_, i) => isAhead(t, ids, i)), [false, false, true])
  const done = after(t, logged("new", "assistant"))
  assert.deepEqual(ids.map((_, i) => isAhead(done, ids, i)), [false, false, false])
  assert.deepEqual(["before", "other"].map((_, i, all) => isAhead(t, all, i)), [false, false])
})

test("an event that comes again changes nothing", () => {
  const some = [event("turn_start"), event("message_start"), text("a"), text("b")]
  const once = after(idle, ...some)
  assert.equal(after(once, ...some), once)
  assert.equal(once.answer.text, "ab")
})

test("an attempt that failed leaves nothing", () => {
  const t = after(idle, event("turn_start"), event("message_start"), text("half"), event("message_dropped"), event("retry"))
  assert.equal(t.answer, undefined)
  assert.equal(t.doing, "trying again")
})

test("a call is asked about until it runs, and runs until it has run", () => {
  const call = { id: "c", name: "bash", input: {} }
  let t = after(idle, event("turn_start"), event("tool_waiting", { call, question: { dir: "/" } }), event("tool_waiting", { call, question: { dir: "/" } }))
  assert.equal(t.asks.length, 1)
  t = after(t, event("tool_start", { call }), event("tool_update", { call, text: "so far" }))
  assert.deepEqual([t.asks.length, t.running[0].text], [0, "so far"])
  assert.equal(after(t, event("tool_end", { call })).running.length, 0)
})

test("what waits for the model is heard with the next message of the user", () => {
  let t = after(idle, event("turn_start"), event("queued", { entry: { id: "q1" } }), event("queued", { entry: { id: "q2" } }))
  assert.equal(t.queued.length, 2)
  assert.equal(after(t, logged("e", "user")).queued.length, 0)
  assert.equal(ended(t).queued.length, 0)
})

test("a turn that failed says why", () => {
  assert.equal(after(idle, event("turn_start"), event("turn_end", { error: { message: "overloaded" } })).problem, "overloaded")
})

const row = (index, o = {}) => ({ index, entry: { id: "e" + index }, kind: "assistant", html: "<p>", ...o })
const work = (...deeds) => ({ calls: deeds.length, deeds: deeds.map(([verb, one, what]) => ({ verb, one, many: one + "s", what })) })
const edit = (what) => ["edited", "file", what], ran = ["ran", "command"]

test("a run is at least two calls that follow each other", () => {
  const rows = [row(0), row(1, { work: work(ran) }), row(2, { html: "", work: {} }), row(3, { work: work(ran) }), row(4), row(5, { work: work(ran) }), row(6)]
  assert.deepEqual(runsOf(rows).map((r) => [r.first, r.last]), [[1, 3]])
  assert.deepEqual(runsOf([row(0, { work: work(ran, ran) })]).map((r) => [r.first, r.last]), [[0, 0]])
})

test("a label, another branch and a draft end a run", () => {
  for (const o of [{ label: "here" }, { others: [{}] }, { draft: true }]) {
    assert.deepEqual(runsOf([row(0, { work: work(ran) }), row(1, { work: work(ran), ...o }), row(2, { work: work(ran) })]), [])
  }
})

test("a run says what it did, and counts a file once", () => {
  const rows = [row(0, { work: { ...work(edit("a"), edit("b")), failed: 1 } }), row(1, { work: work(edit("a"), ran) }), row(2, { work: work(ran) })]
  assert.equal(didWords(rows), "Edited 2 files, ran 2 commands")
  assert.equal(failedIn(rows), 1)
})
