import { FollowError, followRun, reduceChat } from 'thinharness/ui/client'
import type { ChatSnapshot } from 'thinharness/ui/client'
import { ConversationView } from './conversation.js'
import { byId, h, KeyedList } from './dom.js'
import { Server } from './server.js'
import { waitingView } from './waiting.js'
import type { Waiting } from './waiting.js'

// The conversation is in the address: a reload and a second tab show the same one.
if (location.hash.length < 2) history.replaceState(null, '', `#${crypto.randomUUID()}`)
window.addEventListener('hashchange', () => location.reload())
const server = new Server(location.hash.slice(1))

const [text, problem, status] = [byId('text') as HTMLTextAreaElement, byId('problem'), byId('status')]
const main = document.querySelector('main') ?? document.body
const conversation = new ConversationView(byId('messages'))
const waiting = new KeyedList<Waiting>(
  byId('waiting'),
  ({ callId }) => callId,
  (item, before) => before ?? waitingView(item, (answer) => void report(server.answer(answer))),
)
const listIn = (id: string): HTMLElement => byId(id).querySelector('ul') ?? byId(id)
const tasks = new KeyedList<ChatSnapshot['tasks'][number]>(
  listIn('tasks'),
  ({ id }) => id,
  (task) => h('li', {}, `${MARKS[task.status]} ${task.status === 'in_progress' ? task.activeForm : task.content}`),
)
const queue = new KeyedList<ChatSnapshot['queue'][number]>(
  listIn('queue'),
  ({ messageId }) => messageId,
  ({ messageId, content }) => {
    const said = content.map((part) => (part.type === 'text' ? part.text : part.type)).join(' ')
    const remove = (): void => void report(server.change({ remove: [messageId] }))
    return h('li', {}, said, ' ', h('button', { type: 'button', onclick: remove }, 'Remove'))
  },
)
const MARKS = { pending: '○', in_progress: '◐', completed: '●' } as const
const PHASES = { idle: 'Ready', running: 'Answering', waiting: 'Waiting for you' } as const

let snapshot: ChatSnapshot | undefined
let isDrawn = true

/** Draws at most once a frame, however fast the events come. */
function draw(): void {
  isDrawn = true
  if (snapshot === undefined) return
  const { phase, held, thread } = snapshot
  const isAtEnd = main.scrollHeight - main.scrollTop - main.clientHeight < 80
  conversation.show(snapshot)
  waiting.show(snapshot.pending)
  tasks.show(snapshot.tasks)
  queue.show(snapshot.queue)
  byId('tasks').hidden = snapshot.tasks.length === 0
  byId('queue').hidden = snapshot.queue.length === 0
  byId('release').hidden = !held
  byId('steer').hidden = phase !== 'running'
  byId('stop').hidden = phase === 'idle'
  byId('send').textContent = phase === 'idle' ? 'Send' : 'Queue'
  byId('title').textContent = thread.title === '' ? thread.firstMessage || 'New conversation' : thread.title
  if (status.textContent !== PHASES[phase]) status.textContent = PHASES[phase]
  // The list of tasks takes room from the conversation when it appears.
  if (isAtEnd || phase === 'waiting') main.scrollTo({ top: main.scrollHeight })
}

async function follow(): Promise<void> {
  for (;;) {
    try {
      for await (const event of followRun(server.events)) {
        snapshot = reduceChat(snapshot, event)
        if (!isDrawn) continue
        isDrawn = false
        requestAnimationFrame(draw)
      }
    } catch (error) {
      if (!(error instanceof FollowError) || error.status !== 404) throw error
      // The conversation begins with its first message.
      await new Promise((resolve) => document.addEventListener('sent', resolve, { once: true }))
      snapshot = undefined
    }
  }
}

/** Shows what went wrong with a request. */
async function report(request: Promise<void>): Promise<boolean> {
  try {
    problem.textContent = ''
    await request
    return true
  } catch (error) {
    problem.textContent = error instanceof Error ? error.message : 'Something went wrong.'
    return false
  }
}

async function send(whenBusy: 'queue' | 'steer'): Promise<void> {
  const said = text.value.trim()
  if (said === '') return
  text.value = ''
  // A message that could not be sent is given back.
  if (await report(server.send(said, whenBusy))) document.dispatchEvent(new Event('sent'))
  else if (text.value === '') text.value = said
}

byId('composer').addEventListener('submit', (event) => {
  event.preventDefault()
  void send('queue')
})
text.addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
  event.preventDefault()
  void send('queue')
})
byId('steer').addEventListener('click', () => void send('steer'))
byId('stop').addEventListener('click', () => void report(server.stop()))
byId('release').addEventListener('click', () => void report(server.change({ release: true })))
byId('new').addEventListener('click', () => location.assign(`#${crypto.randomUUID()}`))
void follow()
