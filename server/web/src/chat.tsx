// Saying something to a model: the box to write in, what goes with the message, who answers, and
// what waits for the person.
import { useContext, useEffect, useRef, useState } from "preact/hooks"
import { type Card, get, path } from "./api"
import { Arriving } from "./arriving"
import { Ask } from "./ask"
import { type Attached, attached, release } from "./attach"
import { type Command, commandIn, type Within } from "./commands"
import { type Options, type Turns, useTurn } from "./turns"
import { complain, counted, useAsked, useKeys, useTitle, Who } from "./ui"

type Model = { provider: string, model: string, default: boolean }
type Choices = { models: Model[], thinking: string[], programs: { name: string, title: string, resumes: boolean }[] }

let choices: Promise<Choices> | undefined
/** allChoices is what there is to choose from; it stays the same while the server runs. */
export const allChoices = () => choices ??= get<Choices>("/web/choices").catch((e) => { choices = undefined; throw e })

/** What was chosen in this page, by conversation, and what was written and not sent. */
const chosen = new Map<string, Options>(), drafts = new Map<string, string>()
const toolsKey = "coppice-tools"

const nameOf = (m?: { provider?: string, model?: string }) => m?.model ? `${m.provider}/${m.model}` : ""

/** useOptions are the options of the turns of a conversation. */
function useOptions(id: string | undefined, may: boolean): [Options, (o: Partial<Options>) => void] {
  const [o, set] = useState<Options>(() => chosen.get(id ?? "") ?? { tools: may && localStorage.getItem(toolsKey) === "yes", allow: [] })
  return [o, (more) => set((was) => {
    const now = { ...was, ...more }
    chosen.set(id ?? "", now)
    if ("tools" in more) localStorage.setItem(toolsKey, more.tools ? "yes" : "no")
    return now
  })]
}

export function Composer({ id, turns }: { id?: string, turns: Turns }) {
  const box = useRef<HTMLTextAreaElement>(null), pick = useRef<HTMLInputElement>(null)
  const me = useContext(Who)
  const [text, type] = useState(drafts.get(id ?? "") ?? "")
  const [files, setFiles] = useState<Attached[]>([])
  const [o, choose] = useOptions(id, me.tools)
  const { turn } = turns, busy = turn.on
  const write = (words: string) => { type(words); drafts.set(id ?? "", words) }
  useEffect(() => { if (!id && matchMedia("(pointer: fine)").matches) box.current!.focus() }, [])

  const attach = (all: Iterable<File>) => [...all].forEach((f) => void attached(f).then((a) => setFiles((was) => [...was, a]), complain))
  const within: Within = {
    id, attach: () => pick.current!.click(), allow: (rules) => turns.allow(rules),
    resume: (again) => void turns.resume(o, again),
    setModel: (name) => { const [provider, ...rest] = name.split("/"); choose({ provider: rest.length ? provider : undefined, model: rest.length ? rest.join("/") : name }) },
    setThinking: (thinking) => choose({ thinking }), setTools: (tools) => choose({ tools: tools && me.tools }),
  }
  const command = commandIn(text, id)
  const run = (c: Command, argument: string) => {
    write("")
    void (async () => c.run(within, argument))().catch(complain)
  }
  const send = async () => {
    const words = text.trim()
    if (command) {
      if (command.found.length) run(command.found[0], command.argument)
      else complain(new Error(`There is no command /${command.name}. A space before the slash makes it a message.`))
      return
    }
    if (!words && !files.length) return
    const content = files.map((f) => f.part), sent = files
    write("")
    setFiles([])
    const back = () => { if (!box.current?.value) write(words); setFiles(sent) }
    if (busy) { await turns.steer(words, content).then(() => release(sent), (e) => { complain(e); back() }); return }
    if (!id) { chosen.delete(""); drafts.delete("") }
    if (await turns.send(words, content, o)) release(sent)
    else back()
  }
  const keyed = (e: KeyboardEvent) => {
    if (e.isComposing || e.ctrlKey && e.key !== "Enter" || e.altKey) return
    if (e.key === "Enter" && !e.shiftKey) { e.preventDefault(); void send() }
    else if (e.key === "Tab" && command?.found[0] && command.name !== command.found[0].name) { e.preventDefault(); write(`/${command.found[0].name}${command.found[0].takes ? " " : ""}`) }
    else if (e.key === "Escape" && busy) { e.preventDefault(); e.stopPropagation(); turns.cancel() }
    else if (e.key === "ArrowUp" && !text && turn.queued.length) { e.preventDefault(); void turns.takeBack().then(write, complain) }
  }
  return <div class="composer" onDragOver={(e) => e.preventDefault()} onDrop={(e) => { e.preventDefault(); attach(e.dataTransfer?.files ?? []) }}>
    {turn.asks.map((a) => <Ask key={a.call.id} asked={a} decide={(d) => void turns.decide(a, d)} />)}
    {turn.problem && !busy && <p class="stop" role="alert">{turn.problem} <button onClick={turns.forget} aria-label="Close">✕</button></p>}
    {id && !busy && <Unfinished id={id} turns={turns} o={o} tools={me.tools} />}
    {turn.queued.length > 0 && <p class="facts">{counted(turn.queued.length, "message")} waits for the model. <button onClick={() => void turns.takeBack().then(write, complain)}>Take back <kbd>↑</kbd></button></p>}
    {command && <Commands found={command.found} run={(c) => c.takes ? (write(`/${c.name} `), box.current!.focus()) : run(c, "")} />}
    <form class="box" onSubmit={(e) => { e.preventDefault(); void send() }}>
      {files.length > 0 && <ul class="files" aria-label="Attachments">{files.map((f) => <li key={f.key}>{f.url ? <img src={f.url} alt={f.name} /> : <span>{f.name}</span>}
        <button type="button" aria-label={`Remove ${f.name}`} onClick={() => { release([f]); setFiles((was) => was.filter((x) => x !== f)) }}>✕</button></li>)}</ul>}
      <textarea id="say" ref={box} rows={1} value={text} onInput={(e) => write(e.currentTarget.value)} onKeyDown={keyed} onPaste={(e) => { const all = e.clipboardData?.files; if (all?.length) { e.preventDefault(); attach(all) } }}
        aria-label="Say something" placeholder={busy ? "Say something while the model works" : "Say something, or / for commands"} />
      <div class="with">
        <button type="button" class="plain" title="Attach images or files; you can also paste or drop them" aria-label="Attach" onClick={() => pick.current!.click()}>+</button>
        <input ref={pick} type="file" multiple hidden onChange={(e) => { attach(e.currentTarget.files ?? []); e.currentTarget.value = "" }} />
        <Models id={id} o={o} facts={turn.facts} set={within.setModel} />
        {me.tools && <label title="They work on the machine of the server; calls that change something ask first"><input type="checkbox" checked={o.tools} onChange={(e) => choose({ tools: e.currentTarget.checked })} /> Tools</label>}
        <span class="end">{busy && <button type="button" onClick={turns.cancel} title="Stop (Esc)">Stop</button>}
          <button class="main" disabled={!text.trim() && !files.length}>{busy ? "Steer" : "Send"}</button></span>
      </div>
    </form>
  </div>
}

/** Models names who answers, and offers the others. */
function Models({ id, o, facts, set }: { id?: string, o: Options, facts?: { provider: string, model: string }, set: (name: string) => void }) {
  const all = useAsked(allChoices, []), card = useAsked(async (signal) => id ? get<Card>(path`/v1/sessions/${id}/card`, undefined, signal) : undefined, [id])
  const models = all.value?.models ?? [], own = models.find((m) => m.default)
  const usual = nameOf(facts) || (id ? card.value?.model : "") || nameOf(own)
  const names = models.map(nameOf), other = nameOf(o)
  return <label class="who-answers"><span class="hide">Model</span><select value={other} onChange={(e) => set(e.currentTarget.value)} title="Who answers">
    <option value="">{usual || "…"}</option>
    {names.filter((n) => n !== usual || n === other).map((n) => <option value={n}>{n}</option>)}
    {other && !names.includes(other) && <option value={other}>{other}</option>}</select></label>
}

/** Unfinished says that a turn ended in the middle, and goes on with it. */
function Unfinished({ id, turns, o, tools }: { id: string, turns: Turns, o: Options, tools: boolean }) {
  const card = useAsked((signal) => get<Card & { working?: unknown }>(path`/v1/sessions/${id}/card`, undefined, signal), [id, turns.turn.on])
  const c = card.value
  if (!c?.unfinished || c.working || turns.turn.said || c.session.agent !== "coppice" || card.busy) return null
  const waits = c.open.filter((s) => s.state === "waiting")
  const resume = () => void turns.resume({ ...o, tools: tools && (o.tools || c.open.length > 0) })
  return <p class="unfinished" role="status">{waits.length ? `${waits.map((s) => s.tool).join(", ")} waits for your decision.` : "The last turn did not finish."} <button class="main" onClick={resume}>{waits.length ? "Decide" : "Resume"}</button></p>
}

/** Commands are those that the text may mean. */
const Commands = ({ found, run }: { found: Command[], run: (c: Command) => void }) =>
  <ul class="commands" aria-label="Commands">{found.slice(0, 12).map((c, i) => <li><button type="button" class={i ? "" : "first"} onMouseDown={(e) => e.preventDefault()} onClick={() => run(c)}>
    <b>/{c.name}</b> {c.takes && <code>{c.takes}</code>} <span>{c.does}</span>{i === 0 && <kbd>Tab</kbd>}</button></li>)}{!found.length && <li class="soft">There is no such command.</li>}</ul>

export function New() {
  const turns = useTurn()
  useTitle("New chat")
  useKeys({ c: () => document.getElementById("say")?.focus() })
  return <section class="conversation" aria-label="New chat">
    <div class="transcript"><div class="column"><div class="scroll"><div class="rows">{turns.turn.said || turns.turn.on ? <><h1 class="hide">New chat</h1><h2 class="hide">Messages</h2><Arriving turn={turns.turn} /></> : <div class="hello"><h1>New chat</h1><p class="soft">It is kept as a session of this home, like all others.</p></div>}</div></div>
      <Composer turns={turns} /></div></div>
  </section>
}
