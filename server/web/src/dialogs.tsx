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

/** confirm asks before something is done that cannot be undone. */
export const confirm = async (words: string, yes: string) => await put({ words, answers: [["y", yes, "yes"]], danger: true }) === "yes"

export function Questions() {
  const [q, set] = useState<Question>()
  const box = useRef<HTMLDialogElement>(null), input = useRef<HTMLInputElement>(null)
  useEffect(() => { show = (next) => set((was) => { was?.done(); return next }) }, [])
  useEffect(() => {
    box.current?.showModal()
    input.current?.select()
  }, [q])
  if (!q) return null
  const end = (value?: string) => { q.done(value); set(undefined) }
  const keyed = (e: KeyboardEvent) => {
    const answer = !e.ctrlKey && !e.metaKey && !e.altKey && q.answers?.find(([key]) => key === e.key)
    if (answer) { e.preventDefault(); end(answer[2]) }
  }
  return <dialog ref={box} class="question" onClose={() => end()} onKeyDown={keyed} aria-labelledby="question">
    <form onSubmit={(e) => { e.preventDefault(); end(input.current?.value.trim()) }}>
      <h2 id="question">{q.words}</h2>
      {q.hint && <p class="facts" id="hint">{q.hint}</p>}
      {!q.answers && <input ref={input} type="text" defaultValue={q.given} dir="auto" aria-labelledby="question" aria-describedby={q.hint ? "hint" : undefined} autocomplete="off" />}
      <p class="tools">{q.answers ? q.answers.map(([key, name, value]) => <button type="button" class={q.danger ? "danger" : ""} title={key} onClick={() => end(value)}>{name} <kbd>{key}</kbd></button>) : <button class="main">OK</button>}
        <button type="button" onClick={() => end()}>Cancel <kbd>Esc</kbd></button></p>
    </form>
  </dialog>
}
