import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { Words, plainText } from './formatted-text.js'

/** Members of one level that are shown at once. */
const MOST_MEMBERS = 100

interface TreeProps {
  readonly value: unknown
  readonly name?: string
  /** Levels that are open at first. */
  readonly open?: number
  /** What stands after a value, by its path such as `.lines[0].source`: the place that it quotes. */
  readonly note?: ((path: string) => ComponentChildren) | undefined
  readonly path?: string
}

/** A JSON value as a tree whose levels open on demand. */
export function JsonTree({ value, name, open = 2, note, path = '' }: TreeProps) {
  const label = name === undefined ? null : <span class="key">{plainText(name)}</span>
  if (typeof value !== 'object' || value === null)
    return (
      <div class="leaf">
        {label}
        <Leaf value={value} />
        {note?.(path)}
      </div>
    )
  return <Level value={value} label={label} open={open} note={note} path={path} />
}

function Level(props: TreeProps & { readonly value: object; readonly label: ComponentChildren }) {
  const { value, label, open = 0, note, path = '' } = props
  const [isOpen, setOpen] = useState(open > 0)
  const [most, setMost] = useState(MOST_MEMBERS)
  const members = Object.entries(value)
  const size = Array.isArray(value) ? `[${members.length}]` : `{${members.length}}`
  return (
    <details class="level" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        {label}
        <span class="quiet">{size}</span>
        {note?.(path)}
      </summary>
      {isOpen &&
        members
          .slice(0, most)
          .map(([key, member]: [string, unknown]) => (
            <JsonTree
              key={key}
              value={member}
              name={key}
              open={open - 1}
              note={note}
              path={Array.isArray(value) ? `${path}[${key}]` : `${path}.${key}`}
            />
          ))}
      {isOpen && members.length > most && (
        <button type="button" class="more" onClick={() => setMost(most * 10)}>
          {`Show more of ${members.length}`}
        </button>
      )}
    </details>
  )
}

function Leaf({ value }: { readonly value: unknown }) {
  if (typeof value !== 'string') return <span class={`value ${typeof value}`}>{String(value)}</span>
  if (value.length < 120 && !value.includes('\n')) return <span class="value string">{plainText(value)}</span>
  return <Words text={value} />
}

/** A value as a tree, or as JSON text. */
export function JsonView({ value, note }: Pick<TreeProps, 'value' | 'note'>) {
  const [isText, setText] = useState(false)
  if (typeof value !== 'object' || value === null) return <JsonTree value={value} note={note} />
  return (
    <div class="json">
      <button type="button" class="switch" aria-pressed={isText} onClick={() => setText(!isText)}>
        JSON
      </button>
      {isText ? <Words text={JSON.stringify(value, null, 2)} /> : <JsonTree value={value} note={note} />}
    </div>
  )
}
