// Saying something to a model, and deciding about its calls.
import { useContext, useEffect, useRef, useState } from "preact/hooks"
import { get, path, post, stream } from "./api"
import { complain, go, say, Who } from "./ui"

type Call = { id: string, name: string, input: unknown, reason?: string }
type Edit = { path: string, to?: string, hunks?: { heading?: string, lines: string[] }[] }
type Question = { dir: string, rules?: string[], no_rules?: string, edits?: Edit[] }
type Event = { type: string, session: string, update?: { type: string, text?: string }, call?: Call, text?: string, error?: { message: string } | string, question?: Question, facts?: { provider: string, model: string } }
type Asked = { call: Call, question: Question }
type Decision = { decision: "allow" | "deny", reason?: string } | { rules: string[] }

/** used is what the turns of a conversation have used in this tab: the next ones are like them. */
const used = new Map<string, { tools: boolean, allow: string[] }>()
const usedIn = (id?: string) => used.get(id ?? "") ?? { tools: false, allow: [] }

/** Composer is below a conversation. What is said arrives in the transcript by itself; only what is not in the log yet is shown here. */
export function Composer({ id }: { id?: string }) {
  const box = useRef<HTMLTextAreaElement>(null)
  const [busy, setBusy] = useState(false)
  const [text, setText] = useState("")
  const [thinking, setThinking] = useState("")
  const [asks, setAsks] = useState<Asked[]>([])
  const session = useRef(id), tools = useRef<HTMLInputElement>(null), me = useContext(Who)
  const stop = useRef<AbortController>(undefined), left = useRef(false)
  const on = (e: Event) => {
    if (left.current) return
    session.current = e.session || session.current
    switch (e.type) {
      case "turn_start":
        if (id) break
        // The conversation exists now, and its own composer goes on with the turn. This one stays
        // connected: a turn that nobody hears leaves its questions for later.
        left.current = true
        used.set(e.session, { tools: !!tools.current?.checked, allow: [] })
        go(path`/s/${e.session}`)
        break
      case "message_start": case "message_dropped": case "message_end": setText(""); setThinking(""); break
      case "message_update":
        if (e.update?.type === "text") setText((t) => t + (e.update!.text ?? ""))
        else if (e.update?.type === "thinking") setThinking((t) => t + (e.update!.text ?? ""))
        break
      case "tool_waiting": setAsks((a) => [...a.filter((x) => x.call.id !== e.call!.id), { call: e.call!, question: e.question! }]); break
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
      if (failed && !left.current) say(failed.detail ?? failed.message ?? "the turn failed")
    } catch (e) {
      if (!stop.current.signal.aborted && (e as { status?: number }).status !== 404) complain(e as Error)
    }
    setBusy(false)
    setText("")
    setThinking("")
    setAsks([])
  }
  useEffect(() => { // a turn that runs already
    if (id) void isRunning(id).then((runs) => { if (runs) void listen("GET", path`/v1/sessions/${id}/turn/events`) })
    else box.current!.focus()
    return () => { if (!left.current) stop.current?.abort() }
  }, [id])
  const send = (e?: SubmitEvent) => {
    e?.preventDefault()
    const words = box.current!.value.trim()
    if (!words) return
    box.current!.value = ""
    if (busy && session.current) { post(path`/v1/sessions/${session.current}/turn/steer`, { text: words }).catch(complain); return }
    const own = { tools: !!tools.current?.checked, allow: usedIn(id).allow }
    if (id) used.set(id, own)
    void listen("POST", "/v1/turns", { ...(id ? { session: id } : {}), text: words, ...(own.tools ? { tools: ["all"], allow: own.allow } : {}) })
  }
  const keyed = (e: KeyboardEvent) => { if (e.key === "Enter" && !e.shiftKey && !e.isComposing) { e.preventDefault(); send() } }
  const decide = async (call: Call, d: Decision) => {
    try {
      const { waiting } = await post<{ waiting?: boolean }>(path`/v1/sessions/${session.current!}/turn/approve`, { call: call.id, ...d })
      if (id && "rules" in d) used.set(id, { ...usedIn(id), allow: [...usedIn(id).allow, ...d.rules] })
      if (waiting) say("Allowed from now on; that does not cover this call, so it still waits")
      else setAsks((a) => a.filter((x) => x.call !== call))
    } catch (e) { complain(e as Error) }
  }
  return <div class="composer">
    {thinking && !text && <p class="soft asis" aria-live="off">{thinking.slice(-400)}</p>}
    {text && <p class="growing asis" dir="auto">{text}</p>}
    {asks.map((one) => <Ask key={one.call.id} {...one} decide={(d) => void decide(one.call, d)} />)}
    <form onSubmit={send}><textarea id="say" ref={box} rows={2} onKeyDown={keyed} aria-label="Say something" placeholder={busy ? "Say something while the model works" : "Say something (Enter sends, Shift+Enter is a new line)"} />
      <button class="main">{busy ? "Steer" : "Send"}</button>{busy && session.current && <button type="button" onClick={() => post(path`/v1/sessions/${session.current!}/turn/cancel`, {}).catch(complain)}>Stop</button>}</form>
    {me.tools && <label class="facts"><input type="checkbox" ref={tools} defaultChecked={usedIn(id).tools} /> with tools, which work on the machine of the server</label>}
  </div>
}

/** Ask is a question about a call. What is allowed from now on can be changed before. */
function Ask({ call, question: q, decide }: Asked & { decide: (d: Decision) => void }) {
  const [rules, setRules] = useState<string>()
  const why = useRef<HTMLInputElement>(null)
  const always = (e: SubmitEvent) => {
    e.preventDefault()
    const list = rules!.split("\n").map((r) => r.trim()).filter((r) => r)
    if (list.length) decide({ rules: list })
  }
  const deny = (e: SubmitEvent) => {
    e.preventDefault()
    const reason = why.current!.value.trim()
    decide({ decision: "deny", ...(reason ? { reason } : {}) })
  }
  return <div class="ask" role="alertdialog" aria-label={`May ${call.name} run?`}>
    <p><b>{call.name}</b> asks to run in <code>{q.dir}</code>{call.reason && <>: {call.reason}</>}</p>
    {q.edits?.length ? q.edits.map((e) => <Change {...e} />) : <pre>{JSON.stringify(call.input, null, 2)}</pre>}
    {q.no_rules && <p class="soft">No rule can allow it from now on: {q.no_rules}</p>}
    {rules === undefined ? <form class="tools" onSubmit={deny}>
      <button type="button" class="main" onClick={() => decide({ decision: "allow" })}>Allow</button>
      {q.rules && <button type="button" onClick={() => setRules(q.rules!.join("\n"))}>Allow from now on…</button>}
      <button>Deny</button><input ref={why} aria-label="Why it is denied" placeholder="Why not (the model is told)" />
    </form> : <form onSubmit={always}>
      <label>Allowed from now on, a rule on each line<textarea rows={rules.split("\n").length} value={rules} onInput={(e) => setRules(e.currentTarget.value)} /></label>
      <p class="tools"><button class="main">Allow these</button><button type="button" onClick={() => setRules(undefined)}>Back</button></p>
    </form>}
  </div>
}

/** Change is what a call would do to a file. */
const Change = ({ path, to, hunks }: Edit) => <><p><code>{path}</code>{to && <> → <code>{to}</code></>}</p>
  <pre>{hunks?.map((h) => <>{h.heading && <span class="soft">@ {h.heading}{"\n"}</span>}{h.lines.map((l) => l[0] === "+" ? <ins>{l + "\n"}</ins> : l[0] === "-" ? <del>{l + "\n"}</del> : l + "\n")}</>)}</pre></>

// Not the status of the conversation itself, for which all of it may have to be read.
const isRunning = (id: string) => get<{ turns: { session: string }[] }>("/v1/turns").then((r) => r.turns.some((t) => t.session === id), () => false)

export function New() {
  return <section class="new" aria-label="New chat"><h1>New chat</h1><Composer /></section>
}
