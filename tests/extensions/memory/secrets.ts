import { Harness } from 'thinharness'
import type { LogStore } from 'thinharness'
import type { MemoryOptions } from 'thinharness/memory'
import { Sessions } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { tool } from '../../harness/support.js'
import { callMemory, memoryOf, say } from './support.js'

export const ada = { resourceId: 'ada@example.test/é' }

/** New secrets, each of which is planted once, in a text. */
class Secrets {
  readonly all: string[] = []

  get text(): string {
    const some = Array.from(
      { length: 20 },
      (_none, index) => `zq${this.all.length + index}x${Math.random().toString(36).slice(2, 10)}`,
    )
    this.all.push(...some)
    return `The words are ${some.join(' ')}.`
  }
}

/** Plants secrets of an owner wherever a text can get into a log, an index or a file. */
export async function plant(
  log: LogStore,
  index: NonNullable<MemoryOptions['index']>,
  root: string,
): Promise<readonly string[]> {
  const secrets = new Secrets()
  const memory = memoryOf({ log, index, results: true })
  const long = tool('long', () => `${secrets.text}\n`.repeat(100), { maxOutputChars: 2000 })
  const model = new ScriptedModel()
  await using harness = new Harness({ model, log, root, tools: [long], use: [memory] })
  await using sessions = new Sessions({ log, harness })
  const mine = sessions.for(ada)
  for (let thread = 0; thread < 5; thread++) {
    const chat = await mine.create({ title: secrets.text, metadata: { note: secrets.text } })
    for (let turn = 0; turn < 3; turn++) {
      model
        .calls('long')
        .calls('remember', { text: secrets.text })
        .calls('recall_memory', { query: 'words' })
        .says(secrets.text)
      await (
        await chat.send(secrets.text)
      ).done
    }
    await mine.fork(chat.threadId, { title: secrets.text })
  }
  await say(log, secrets.text, { metadata: ada, runId: 'alone', reply: secrets.text })
  await say(log, secrets.text, { reply: secrets.text, history: { runId: 'alone' } })
  await callMemory({ log, memory, metadata: ada }, ['forget', { text: secrets.all[0] ?? '' }])
  return secrets.all
}
