// Questions to the person: for a text, with a few answers, or before what cannot be undone.
import { useEffect, useRef, useState } from "preact/hooks"

/** Answer is a button: its key, its name, and what it means. */
export type Answer = [key: string, name: string, value: string]
type Question = { words: string, hint?: string, given?: string, answers?: Answer[], danger?: boolean, done: (value?: string) => void }

let show: (q: Question) => void = () => {}
const put = (q: Omit<Question, "done">) => new Promise<string | undefined>((done) => show({ ...q, done }))

/** ask asks for a text. It is undefined if the person does not want to. */
export const ask = (words: string, given = "", hint = "") => put({ words, given, hint })

/** choose offers a few answers, each with a key. */
export const choose = (words: string, answers: Answer[]) => put({ words, answers })

const mostInLine = 4 // answers; more of them are a menu

/** confirm asks before something is done that cannot be undone. */
export const confirm = async (words: string, yes: string) => await put({ words, answers: [["y", yes, "yes"]], danger: true }) === "yes"

export function Questions() {
  const [q, set] = useState<Question>()
  const box = useRef<HTMLDialogElement>(null), input = useRef<HTMLInputElement>(null)
  useEffect(() => { show = (next) => set((was) => { was?.done(); return next }) }, [])
  useEffect(() => {
    box.current?.showModal()
    input.current?.select()
    if (q?.answers) box.current?.querySelector("button")?.focus()
  }, [q])
  if (!q) return null
  const end = (value?: string) => { q.done(value); set(undefined) }
  const isMenu = (q.answers?.length ?? 0) > mostInLine
  const step = (by: number) => {
    const all = [...box.current!.querySelectorAll<HTMLButtonElement>(".menu button")]
    all[(all.indexOf(document.activeElement as HTMLButtonElement) + by + all.length) % all.length]?.focus()
  }
  const keyed = (e: KeyboardEvent) => {
    if (isMenu && (e.key === "ArrowDown" || e.key === "ArrowUp")) { e.preventDefault(); step(e.key === "ArrowDown" ? 1 : -1) }
    const answer = !e.ctrlKey && !e.metaKey && !e.altKey && q.answers?.find(([key]) => key === e.key)
    if (answer) { e.preventDefault(); end(answer[2]) }
  }
  return <dialog ref={box} class={isMenu ? "question choice-of" : "question"} onClose={() => end()} onKeyDown={keyed} aria-labelledby="question">
    <form onSubmit={(e) => { e.preventDefault(); end(input.current?.value.trim()) }}>
      <h2 id="question">{q.words}</h2>
      {q.hint && <p class="facts" id="hint">{q.hint}</p>}
      {!q.answers && <input ref={input} type="text" defaultValue={q.given} dir="auto" aria-labelledby="question" aria-describedby={q.hint ? "hint" : undefined} autocomplete="off" />}
      {isMenu && <ul class="menu">{q.answers!.map(([key, name, value]) => <li><button type="button" onClick={() => end(value)}>{name}<kbd>{key}</kbd></button></li>)}</ul>}
      <p class="tools">{isMenu ? null : q.answers ? q.answers.map(([key, name, value]) => <button type="button" class={q.danger ? "danger" : ""} title={key} onClick={() => end(value)}>{name} <kbd>{key}</kbd></button>) : <button class="main">OK</button>}
        <button type="button" onClick={() => end()}>Cancel <kbd>Esc</kbd></button></p>
    </form>
  </dialog>
}
