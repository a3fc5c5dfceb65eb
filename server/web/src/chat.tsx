// Saying something to a model, and deciding about its calls.
import { useContext, useEffect, useRef, useState } from "preact/hooks"
import { get, path, post, stream } from "./api"
import { complain, go, say, Who } from "./ui"

type Call = { id: string, name: string, input: unknown, reason?: string }
type Event = { type: string, session: string, update?: { type: string, text?: string }, call?: Call, text?: string, error?: { message: string } | string, question?: { dir: string, rules?: string[] }, facts?: { provider: string, model: string } }

/** Composer is below a conversation. What is said arrives in the transcript by itself; only what is not in the log yet is shown here. */
export function Composer({ id }: { id?: string }) {
  const box = useRef<HTMLTextAreaElement>(null)
  const [busy, setBusy] = useState(false)
  const [text, setText] = useState("")
  const [thinking, setThinking] = useState("")
  const [asks, setAsks] = useState<{ call: Call, dir?: string }[]>([])
  const session = useRef(id), tools = useRef<HTMLInputElement>(null), me = useContext(Who)
  const stop = useRef<AbortController>(undefined)
  const on = (e: Event) => {
    session.current = e.session || session.current
    switch (e.type) {
      case "message_start": case "message_dropped": case "message_end": setText(""); setThinking(""); break
      case "message_update":
        if (e.update?.type === "text") setText((t) => t + (e.update!.text ?? ""))
        else if (e.update?.type === "thinking") setThinking((t) => t + (e.update!.text ?? ""))
        break
      case "tool_waiting": setAsks((a) => [...a.filter((x) => x.call.id !== e.call!.id), { call: e.call!, dir: e.question?.dir }]); break
      case "tool_start": case "tool_end": setAsks((a) => a.filter((x) => x.call.id !== e.call?.id)); break
      case "error": say(typeof e.error === "string" ? e.error : e.error?.message ?? "something failed"); break
    }
  }
  const listen = async (method: string, url: string, body?: unknown) => {
    setBusy(true)
    stop.current = new AbortController()
    let failed: { message?: string, detail?: string } | undefined
    try {
      await stream(method, url, { body, signal: stop.current.signal }, (m) => {
        if (m.event === "message") on(m.data.event)
        if (m.event === "error") failed = m.data.error
      })
      if (failed) say(failed.detail ?? failed.message ?? "the turn failed")
    } catch (e) {
      if (!stop.current.signal.aborted && (e as { status?: number }).status !== 404) complain(e as Error)
    }
    setBusy(false)
    setText("")
    setThinking("")
    setAsks([])
    if (!id && session.current) go(path`/s/${session.current}`)
  }
  useEffect(() => { // a turn that runs already
    if (id) void isRunning(id).then((runs) => { if (runs) void listen("GET", path`/v1/sessions/${id}/turn/events`) })
    return () => stop.current?.abort()
  }, [id])
  const send = (e?: SubmitEvent) => {
    e?.preventDefault()
    const words = box.current!.value.trim()
    if (!words) return
    box.current!.value = ""
    if (busy && session.current) { post(path`/v1/sessions/${session.current}/turn/steer`, { text: words }).catch(complain); return }
    void listen("POST", "/v1/turns", { ...(id ? { session: id } : {}), text: words, ...(tools.current?.checked ? { tools: ["all"] } : {}) })
  }
  const keyed = (e: KeyboardEvent) => { if (e.key === "Enter" && !e.shiftKey && !e.isComposing) { e.preventDefault(); send() } }
  const decide = (call: Call, decision: "allow" | "deny") => post(path`/v1/sessions/${session.current!}/turn/approve`, { call: call.id, decision }).then(() => setAsks((a) => a.filter((x) => x.call !== call)), complain)
  return <div class="composer">
    {thinking && !text && <p class="soft asis" aria-live="off">{thinking.slice(-400)}</p>}
    {text && <p class="growing asis" dir="auto">{text}</p>}
    {asks.map(({ call, dir }) => <div class="ask" role="alertdialog" aria-label={`May ${call.name} run?`}><p><b>{call.name}</b> asks to run{dir && <> in <code>{dir}</code></>}{call.reason && <>: {call.reason}</>}</p><pre>{JSON.stringify(call.input, null, 2)}</pre>
      <p class="tools"><button class="main" onClick={() => void decide(call, "allow")}>Allow</button><button onClick={() => void decide(call, "deny")}>Deny</button></p></div>)}
    <form onSubmit={send}><textarea id="say" ref={box} rows={2} onKeyDown={keyed} aria-label="Say something" placeholder={busy ? "Say something while the model works" : "Say something (Enter sends, Shift+Enter is a new line)"} />
      <button class="main">{busy ? "Steer" : "Send"}</button>{busy && session.current && <button type="button" onClick={() => post(path`/v1/sessions/${session.current!}/turn/cancel`, {}).catch(complain)}>Stop</button>}</form>
    {me.tools && <label class="facts"><input type="checkbox" ref={tools} /> with tools, which work on the machine of the server</label>}
  </div>
}

// Not the status of the conversation itself, for which all of it may have to be read.
const isRunning = (id: string) => get<{ turns: { session: string }[] }>("/v1/turns").then((r) => r.turns.some((t) => t.session === id), () => false)

export function New() {
  return <section class="new" aria-label="New chat"><h1>New chat</h1><Composer /></section>
}
