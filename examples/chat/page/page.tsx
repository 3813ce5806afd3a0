import { useEffect, useLayoutEffect, useRef } from 'react'
import type { KeyboardEvent, ReactNode, RefObject, SubmitEvent } from 'react'
import { createRoot } from 'react-dom/client'
import { useChatThread } from 'thinharness/ui/react'
import type { ChatThread } from 'thinharness/ui/react'
import { Messages } from './conversation.js'
import { Waiting } from './waiting.js'

/** Below the address of the page, wherever that is. */
const API = new URL('api', document.baseURI).pathname

const MARKS = { pending: '○', in_progress: '◐', completed: '●' } as const
const PHASES = { idle: 'Ready', running: 'Answering', waiting: 'Waiting for you' } as const

function Page({ threadId }: { readonly threadId: string }): ReactNode {
  const chat = useChatThread({ threadId, api: API })
  const { title, phase, runs, sending, pending, answering, resend, discard, answer, regenerate } = chat
  const isUnfinished = ['failed', 'cancelled'].includes(runs.at(-1)?.status ?? '')
  const main = useScrollToEnd(chat)
  return (
    <>
      <header>
        <h1 id="title">{title === '' ? 'New conversation' : title}</h1>
        <p id="status" role="status">
          {PHASES[phase]}
        </p>
        <button type="button" id="new" onClick={() => location.assign(`#${crypto.randomUUID()}`)}>
          New conversation
        </button>
      </header>
      <main ref={main}>
        <Messages {...{ runs, sending, resend, discard }} />
        <button type="button" hidden={phase !== 'idle' || !isUnfinished} onClick={() => void regenerate()}>
          Try again
        </button>
        <section id="waiting" aria-label="Waiting for you">
          {pending.map((item) => (
            <Waiting key={item.callId} {...{ item, answer }} isAnswering={answering.includes(item.callId)} />
          ))}
        </section>
      </main>
      <Aside {...chat} />
      <Composer {...chat} />
    </>
  )
}

/** Stays at the end of the conversation, unless the person has scrolled up; what waits is always shown. */
function useScrollToEnd({ runs, pending, tasks, queue, phase }: ChatThread): RefObject<HTMLElement | null> {
  const main = useRef<HTMLElement>(null)
  const isAtEnd = useRef(true)
  useEffect(() => {
    const measure = ({ target }: Event): void => {
      const { scrollHeight, scrollTop, clientHeight } = target as HTMLElement
      isAtEnd.current = scrollHeight - scrollTop - clientHeight < 80
    }
    const element = main.current
    element?.addEventListener('scroll', measure)
    return () => element?.removeEventListener('scroll', measure)
  }, [])
  useLayoutEffect(() => {
    if (isAtEnd.current || phase === 'waiting') main.current?.scrollTo({ top: main.current.scrollHeight })
  }, [runs, pending, tasks, queue, phase])
  return main
}

function Aside({ tasks, queue, held, unqueue, releaseQueue }: ChatThread): ReactNode {
  return (
    <aside aria-label="Tasks and queue">
      <section id="tasks" hidden={tasks.length === 0}>
        <h2>Tasks</h2>
        <ul>
          {tasks.map(({ id, status, activeForm, content }) => (
            <li key={id}>{`${MARKS[status]} ${status === 'in_progress' ? activeForm : content}`}</li>
          ))}
        </ul>
      </section>
      <section id="queue" hidden={queue.length === 0}>
        <h2>Queue</h2>
        <ul>
          {queue.map(({ messageId, content }) => (
            <li key={messageId}>
              {content.map((part) => (part.type === 'text' ? part.text : part.type)).join(' ')}{' '}
              <button type="button" onClick={() => void unqueue(messageId)}>
                Remove
              </button>
            </li>
          ))}
        </ul>
        <button type="button" id="release" hidden={!held} onClick={() => void releaseQueue()}>
          Send the queue
        </button>
      </section>
    </aside>
  )
}

function Composer({ phase, error, send, stop }: ChatThread): ReactNode {
  const text = useRef<HTMLTextAreaElement>(null)
  const say = (whenBusy: 'queue' | 'steer'): void => {
    const said = text.current?.value.trim() ?? ''
    if (text.current === null || said === '') return
    text.current.value = ''
    void send(said, { whenBusy })
  }
  const submit = (event: SubmitEvent | KeyboardEvent): void => {
    event.preventDefault()
    say('queue')
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === 'Enter' && !event.shiftKey && !event.nativeEvent.isComposing) submit(event)
  }
  return (
    <form id="composer" aria-label="Write" onSubmit={submit}>
      <label htmlFor="text">Message</label>
      <textarea id="text" ref={text} rows={2} placeholder="Write a message" required onKeyDown={onKeyDown} />
      <p id="problem" role="alert">
        {error?.message}
      </p>
      <button type="button" id="stop" hidden={phase === 'idle'} onClick={() => void stop()}>
        Stop
      </button>
      <button type="button" id="steer" hidden={phase !== 'running'} onClick={() => say('steer')}>
        Steer
      </button>
      <button type="submit" id="send">
        {phase === 'idle' ? 'Send' : 'Queue'}
      </button>
    </form>
  )
}

// The conversation is in the address: a reload and a second tab show the same one.
if (location.hash.length < 2) history.replaceState(null, '', `#${crypto.randomUUID()}`)
window.addEventListener('hashchange', () => location.reload())
const root = document.getElementById('root')
if (root !== null) createRoot(root).render(<Page threadId={location.hash.slice(1)} />)
