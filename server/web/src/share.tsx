// Export, after a look at what should not leave the machine.
import { useState } from "preact/hooks"
import { bytes, path, post } from "./api"
import { allChoices } from "./chat"
import { shortened, useShort } from "./names"
import { confirm } from "./dialogs"
import { complain, copy, counted, Failed, go, Link, moves, say, useAsked, useKeys, useMay } from "./ui"
import { done } from "./actions"

type Secret = { id: string, kind: string, preview: string, count: number, places: Place[] }
type Place = { session: string, entry?: string, path?: string, file?: string, kept?: boolean }
type Result = { secrets: Secret[], receipt?: { left?: unknown[] } }

const formats: [name: string, title: string, ending: string, about: string][] = [
  ["html", "HTML page", "html", "one file with all branches, to read and to send"], ["md", "Markdown", "md", "the path that is shown"],
  ["json", "JSON", "json", "one document with all branches"], ["jsonl", "JSON lines", "jsonl", "as Coppice keeps it"],
]

export function Share({ id }: { id: string }) {
  const admin = useMay("admin")
  const [redact, setRedact] = useState(true)
  const [busy, setBusy] = useState("")
  const save = async (format: string, ending: string) => {
    setBusy(format)
    try {
      const url = URL.createObjectURL(await bytes(path`/v1/sessions/${id}/export`, { format, redact }))
      const a = document.createElement("a")
      a.href = url
      a.download = id.replace(/[^\w.-]+/g, "-") + "." + ending
      a.click()
      setTimeout(() => URL.revokeObjectURL(url), 60_000)
      say("saved")
    } catch (e) {
      complain(e as Error)
    }
    setBusy("")
  }
  return <div class="share">
    {admin ? <Review id={id} /> : <p class="soft">Looking for secrets needs a token with admin access. An export can take them out all the same.</p>}
    <h2>Export</h2>
    <p><label><input type="checkbox" checked={redact} onChange={(e) => setRedact(e.currentTarget.checked)} /> Take out secrets</label></p>
    <ul class="formats">{formats.map(([format, name, ending, about]) => <li><button disabled={!!busy} onClick={() => void save(format, ending)}>{busy === format ? "…" : name}</button> <span class="soft">{about}</span></li>)}</ul>
    <Agents id={id} busy={busy} save={save} />
  </div>
}

/** Agents are other programs in which the conversation can go on. */
function Agents({ id, busy, save }: { id: string, busy: string, save: (format: string, ending: string) => Promise<void> }) {
  const all = useAsked(allChoices, []).value?.programs ?? []
  const [name, choose] = useState("")
  const one = all.find((p) => p.name === name) ?? all[0]
  if (!one) return null
  const command = `coppice resume ${id} --in ${one.name}`
  return <section aria-label="Another agent"><h2>Another agent</h2>
    <p class="tools"><label>Continue it in <select value={one.name} onChange={(e) => choose(e.currentTarget.value)}>{all.map((p) => <option value={p.name}>{p.title}</option>)}</select></label></p>
    {one.resumes ? <><p class="soft">This command writes it where {one.title} looks for its files, says what they cannot hold, and resumes it there:</p>
      <p class="command"><code>{command}</code><button onClick={() => void copy(command, "the command")}>Copy</button></p></>
      : <p class="soft">{one.title} has no command that continues a conversation; its file can be saved.</p>}
    <p class="tools"><button disabled={!!busy} onClick={() => void save(one.name, one.name + ".jsonl")}>{busy === one.name ? "…" : `Save as a file of ${one.title}`}</button></p>
  </section>
}

/** Review shows the secrets of a conversation before they are taken out: all but those that are kept. */
function Review({ id }: { id: string }) {
  const found = useAsked((signal) => post<Result>("/v1/upkeep/redact", { sessions: [id] }, signal), [id])
  const [kept, setKept] = useState<string[]>([])
  const [cur, move] = useState(0)
  const all = found.value?.secrets ?? [], keep = kept.filter((k) => all.some((s) => s.id === k)), taken = all.length - keep.length
  const toggle = (s?: Secret) => { if (s) setKept(keep.includes(s.id) ? keep.filter((k) => k !== s.id) : [...keep, s.id]) }
  const apply = async () => {
    if (!taken) { say(all.length ? "all of them are kept" : "nothing was found"); return }
    const words = `Take out ${counted(taken, "secret")}${keep.length ? ` and keep ${keep.length}` : ""}, from the whole home? This cannot be undone.`
    if (!await confirm(words, "Take out")) return
    await post<Result>("/v1/upkeep/redact", { sessions: [id], keep, apply: true }).then((r) => {
      const left = r.receipt?.left?.length ?? 0
      done(`took out ${counted(r.secrets.length, "secret")}${left ? `; ${counted(left, "place")} still ${left === 1 ? "has" : "have"} one: coppice redact says which` : ""}`)
      found.again()
    }, complain)
  }
  const named = useShort(id, all.flatMap((s) => s.places.slice(0, 5).flatMap((p) => p.session === id && p.entry ? [p.entry] : [])))
  const seen = all[cur]?.places.find((p) => p.entry)
  useKeys({ ...moves(cur, all.length, move), " ": () => toggle(all[cur]), X: () => void apply(), Enter: () => { if (seen) go(placeOf(seen)) } })
  return <section aria-label="Secrets"><h2>Secrets</h2><Failed error={found.error} />
    {!found.value ? !found.error && <p class="soft">Looking…</p> : all.length === 0 ? <p>None was found.</p> : <>
      <div class="wide" tabIndex={0} role="region" aria-label="The secrets"><table class="secrets"><thead><tr><th scope="col">Take out</th><th scope="col">What</th><th scope="col">Which</th><th scope="col" class="right">How often</th><th scope="col">Where</th></tr></thead><tbody>{all.map((s, i) =>
        <tr class={`${i === cur ? "here" : ""}${keep.includes(s.id) ? " kept" : ""}`} onClick={() => move(i)}>
          <td><input type="checkbox" checked={!keep.includes(s.id)} onChange={() => toggle(s)} aria-label={`Take out ${s.kind} ${s.preview}`} title="Space" /></td><td>{s.kind}</td><td><code>{s.preview}</code></td><td class="right">{s.count}</td>
          <td>{s.places.slice(0, 5).map((p) => p.entry ? <><Link to={placeOf(p)} title={p.entry}>{p.session === id ? named(p.entry) : shortened(p.session) + " " + shortened(p.entry)}</Link> </> : <>{p.file ?? p.path} </>)}{s.places.length > 5 && `and ${s.places.length - 5} more`}</td></tr>)}</tbody></table></div>
      <p><button class="danger" disabled={!taken} onClick={() => void apply()} title="X">Take out {counted(taken, "secret")}{keep.length > 0 && `, keep ${keep.length}`} …</button></p></>}
  </section>
}

const placeOf = (p: Place) => path`/s/${p.session}/e/${p.entry!}`
