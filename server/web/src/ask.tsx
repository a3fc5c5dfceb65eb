// A question about a call: what would run, the changes it would make to files, and the answers that
// there are. The rules that would allow it from now on can be changed before they are given.
import { useEffect, useRef, useState } from "preact/hooks"
import { Drawn } from "./drawn"
import type { Asked } from "./turn"
import type { Decision } from "./turns"
import { useKeys } from "./ui"

export function Ask({ asked: { call, question: q }, decide }: { asked: Asked, decide: (d: Decision) => void }) {
  const [step, go] = useState<"ask" | "rules" | "reason">("ask")
  const box = useRef<HTMLDivElement>(null)
  const isAsking = step === "ask"
  useKeys(isAsking ? { y: () => decide({ decision: "allow" }), n: () => go("reason"), ...(q.rules?.length ? { a: () => go("rules") } : {}) } : { Escape: () => go("ask") })
  useEffect(() => { // somebody who writes goes on writing
    const at = document.activeElement as HTMLTextAreaElement | null
    if (isAsking && (!at || at === document.body || at.id === "say" && !at.value)) box.current?.focus()
  }, [isAsking])
  return <div class="ask" role="alertdialog" aria-label={`May ${call.name} run?`} tabIndex={-1} ref={box}>
    <p class="question"><b>{call.name}</b> asks to {q.edits?.length ? <>change {q.edits.map((e) => <><code>{e.path}</code> </>)}</> : "run "}<span class="soft">in <code>{q.dir}</code></span></p>
    {call.reason && <p class="soft">{call.reason}</p>}
    <div class="what" tabIndex={0} role="region" aria-label="What would run">{q.edits?.length ? <Drawn what={{ edits: q.edits }} /> : <Drawn unfolded what={{ content: [{ type: "tool_use", tool_use: { id: call.id, name: call.name, input: call.input } }] }} before={JSON.stringify(call.input, null, 2)} />}</div>
    {isAsking && <>
      <p class="tools"><button class="main" aria-keyshortcuts="y" onClick={() => decide({ decision: "allow" })}>Allow <kbd aria-hidden="true">y</kbd></button>
        {!!q.rules?.length && <button aria-keyshortcuts="a" onClick={() => go("rules")}>Always… <kbd aria-hidden="true">a</kbd></button>}
        <button aria-keyshortcuts="n" onClick={() => go("reason")}>Deny… <kbd aria-hidden="true">n</kbd></button></p>
      {q.rules?.length ? <p class="soft">Always: {q.rules.map((r) => <><code>{r}</code> </>)}</p> : q.no_rules && <p class="soft">No rule can allow it from now on: {q.no_rules}</p>}</>}
    {step === "reason" && <Deny decide={decide} back={() => go("ask")} />}
    {step === "rules" && <Always rules={q.rules!} decide={decide} back={() => go("ask")} />}
  </div>
}

type Answering = { decide: (d: Decision) => void, back: () => void }

function Deny({ decide, back }: Answering) {
  const why = useRef<HTMLInputElement>(null)
  useEffect(() => why.current?.focus(), [])
  const deny = (e: SubmitEvent) => {
    e.preventDefault()
    const reason = why.current!.value.trim()
    decide({ decision: "deny", ...(reason ? { reason } : {}) })
  }
  return <form class="tools" onSubmit={deny}><input ref={why} type="text" aria-label="Why it is denied" placeholder="Why not? The model is told (optional)" />
    <button class="main">Deny</button><button type="button" onClick={back}>Back</button></form>
}

function Always({ rules, decide, back }: Answering & { rules: string[] }) {
  const box = useRef<HTMLTextAreaElement>(null)
  useEffect(() => box.current?.focus(), [])
  const allow = (e: SubmitEvent) => {
    e.preventDefault()
    const list = box.current!.value.split("\n").map((r) => r.trim()).filter(Boolean)
    if (list.length) decide({ rules: list })
  }
  return <form onSubmit={allow}><label>Allowed from now on, a rule on each line<textarea ref={box} rows={Math.min(6, rules.length + 1)} defaultValue={rules.join("\n")} spellcheck={false} /></label>
    <p class="tools"><button class="main">Allow these</button><button type="button" onClick={back}>Back</button></p></form>
}
