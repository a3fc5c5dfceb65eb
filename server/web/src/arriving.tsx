// What has been said and is not among the rows yet: one's own message, and the answer as it
// arrives. It is at the end of the conversation, where the rows will be.
import { useEffect, useState } from "preact/hooks"
import { Drawn, textOf } from "./drawn"
import type { Turn } from "./turn"
import { counted } from "./ui"

export function Arriving({ turn }: { turn: Turn }) {
  const { said, answer, running } = turn
  return <>
    {said && <article class="user arriving" aria-label="User"><header><b>User</b></header>
      <Drawn what={{ content: [textOf(said.text)] }} before={said.text} />{said.files > 0 && <p class="media">{counted(said.files, "attachment")}</p>}</article>}
    {answer && (answer.text || answer.thinking) && <article class="assistant arriving" aria-label="Assistant, answering" aria-busy="true"><header><b>Assistant</b>{turn.facts && <small>{turn.facts.model}</small>}</header>
      {answer.thinking && !answer.text && <p class="thought asis" dir="auto">{tail(answer.thinking)}</p>}
      {answer.text && <Drawn what={{ content: [textOf(answer.text)] }} before={answer.text} />}</article>}
    {running.map((r) => <Running key={r.call.id} name={r.call.name} text={r.text} />)}
    {turn.on && !running.length && !turn.asks.length && <p class="working" role="status"><i aria-hidden="true" />{doing(turn)}</p>}
  </>
}

const tail = (text: string) => text.length > 600 ? "…" + text.slice(-600) : text

function doing(t: Turn): string {
  if (t.doing) return t.doing + "…"
  if (t.answer?.entry) return "working…"
  if (t.answer?.call) return `asking for ${t.answer.call}…`
  if (t.answer?.text) return "answering…"
  return t.answer?.thinking ? "thinking…" : t.facts ? "waiting for the model…" : "starting…"
}

/** Running is a call that runs: for how long, and the end of what it says. */
function Running({ name, text }: { name: string, text: string }) {
  const [s, set] = useState(0)
  useEffect(() => { const t = setInterval(() => set((s) => s + 1), 1000); return () => clearInterval(t) }, [])
  return <div class="working"><p role="status"><i aria-hidden="true" /><b>{name}</b> runs…</p><small aria-hidden="true">{s > 1 && `${s} s`}</small>{text && <pre>{text.trimEnd().split("\n").slice(-6).join("\n")}</pre>}</div>
}
