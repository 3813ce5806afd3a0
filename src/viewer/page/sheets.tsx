import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { ProblemKind } from '../finding/problems.js'
import { ACTIONS } from './keys.js'
import type { Store } from './store.js'
import { plainText } from './text/formatted-text.js'

/** What opens above the page: the keys, and the list of problems. */
export function Sheets({ store }: { readonly store: Store }) {
  const { sheet } = store.view
  const closeSheet = () => store.set({ sheet: null })
  if (sheet === 'help')
    return (
      <Sheet title="Keys" onClose={closeSheet}>
        <dl class="keys">
          {ACTIONS.map(({ keys, name }) => (
            <>
              <dt>
                {keys.map((key) => (
                  <kbd>{KEY_NAMES[key] ?? key}</kbd>
                ))}
              </dt>
              <dd>{name}</dd>
            </>
          ))}
        </dl>
      </Sheet>
    )
  if (sheet !== 'problems') return null
  return (
    <Sheet title="Problems" onClose={closeSheet}>
      {store.problems.length === 0 && <p class="quiet">Nothing failed.</p>}
      <ul class="problems">
        {store.problems.map((problem) => (
          <li>
            <button type="button" onClick={() => store.goTo(problem, { sheet: null })}>
              <span class={`tag ${problem.isGrave || problem.kind.startsWith('failed') ? 'bad' : 'warn'}`}>
                {PROBLEM_NAMES[problem.kind]}
              </span>
              <span class="nowrap">{plainText(problem.text)}</span>
            </button>
          </li>
        ))}
      </ul>
    </Sheet>
  )
}

const KEY_NAMES: Readonly<Record<string, string>> = {
  ArrowDown: '↓',
  ArrowUp: '↑',
  ArrowLeft: '←',
  ArrowRight: '→',
  ' ': 'Space',
}

const PROBLEM_NAMES: Readonly<Record<ProblemKind, string>> = {
  failed_run: 'run failed',
  failed_call: 'call failed',
  loop: 'loop',
  asked_again: 'asked again',
  lost_cache: 'cache lost',
  retry: 'retry',
  interrupted: 'interrupted',
  warning: 'warning',
}

interface SheetProps {
  readonly title: string
  readonly onClose: () => void
  readonly children: ComponentChildren
}

function Sheet({ title, onClose, children }: SheetProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => dialog.current?.showModal(), [])
  return (
    <dialog
      ref={dialog}
      aria-label={title}
      onClose={onClose}
      onClick={(event) => {
        if (event.target === dialog.current) onClose()
      }}
    >
      <h2>{title}</h2>
      {children}
    </dialog>
  )
}
