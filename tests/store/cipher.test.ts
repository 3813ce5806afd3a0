import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { compression, encryption, HarnessError, rekey } from 'thinharness'
import type { LogEvent, LogStore } from 'thinharness'
import { Sessions } from 'thinharness/session'
import { runLogContract, ScriptedModel } from 'thinharness/testing'
import { harnessOf, tool } from '../harness/support.js'
import { collect, eventsOfRun } from '../support/collect.js'
import { memoryPlace, placesWithBytes } from './cipher-places.js'
import type { Cipher, Place } from './cipher-places.js'

const KEYS: Readonly<Record<string, Uint8Array>> = { k1: randomBytes(32), k2: randomBytes(32) }
const cipherOf = (keyId = 'k1', more: Partial<Parameters<typeof encryption>[0]> = {}): Cipher =>
  encryption({ key: (id) => KEYS[id], keyId, ...more })
/** Begins each planted text. */
const PLANTED = 'pl4nted-'
const withBytes = await placesWithBytes()
const all: (readonly [string, () => Pick<Place, 'open'>])[] = [['memory', memoryPlace], ...withBytes]

const failing = (code: string, part = ''): unknown =>
  expect.objectContaining({ code, message: expect.stringContaining(part) as string })

function event(seq: number, text: string, more: object = {}): LogEvent {
  return {
    kind: 'hook_failed',
    seq,
    at: `2026-01-01T00:00:${String(seq).padStart(2, '0')}.000Z`,
    text,
    ...more,
  } as LogEvent
}

/** A run of three events; only their texts matter. */
async function store(log: LogStore, runId: string, text = 'text'): Promise<void> {
  await log.append(
    { kind: 'run', id: runId },
    [1, 2, 3].map((seq) => event(seq, `${text} ${seq}`)),
  )
}

/** Plants texts wherever a harness, a conversation and a host can put some. Gives their number. */
async function plant(log: LogStore): Promise<number> {
  let planted = 0
  const word = (): string => `${PLANTED}${(planted += 1)}`
  const look = tool('look', () => Array.from({ length: 70 }, word).join(' '))
  const pay = tool('pay', () => word(), { requiresApproval: true })
  const breaks = tool('break', () => {
    throw new Error(word())
  })
  const model = new ScriptedModel().always(({ heard }) => {
    const prompt = 'prompt' in heard ? JSON.stringify(heard.prompt) : ''
    if (prompt.includes('fail')) return { error: new HarnessError('provider_error', word()) }
    if (prompt === '') return { text: word() }
    return { text: word(), calls: ['look', 'pay', 'break'].map((name) => ({ name, arguments: { note: word() } })) }
  })
  onTestFinished(() => model[Symbol.dispose]())
  const harness = harnessOf({ model, tools: [look, pay, breaks], log })
  const metadata = (): object => ({ note: word(), resourceId: 'ann' })
  for (let index = 0; index < 5; index += 1) {
    const paused = await harness.run(`${word()} pays`, { metadata: { note: word() } })
    const [item] = paused.pending
    if (paused.resumeState === null) throw new Error('Expected the run to pause.')
    await harness.resume(paused.resumeState, [
      { callId: item?.callId ?? '', approved: index % 2 === 0, reason: word() },
    ])
    await harness.run(`${word()} fail`, { metadata: metadata() }).catch(() => undefined)
  }
  const sessions = new Sessions({ log, harness })
  const chat = await sessions.for({ resourceId: 'ann' }).create({ threadId: 'chat', title: word() })
  for (const text of [`${word()} pays`, `${word()} pays`]) await chat.send(text, { metadata: { note: word() } })
  await chat.whenIdle()
  await sessions.close()
  for (const kind of ['run', 'thread'] as const)
    for (let index = 0; index < 70; index += 1) {
      const ref = { kind, id: `${kind}_${index}` }
      await log.append(
        ref,
        [1, 2, 3].map((seq) => event(seq, word(), { metadata: { note: word() } })),
        {
          ...(kind === 'thread' && { digest: { note: word() } }),
        },
      )
      await log.post(ref, { id: 'post_1', body: { text: word() } })
    }
  await log.post({ kind: 'thread', id: 'unborn' }, { id: 'post_1', body: word() })
  return planted
}

/** The texts that a log gives back by all its ways. */
async function given(log: LogStore): Promise<string> {
  const threads = await collect(log.list({ kind: 'thread' }))
  const runs = await collect(log.list())
  const texts: unknown[] = [threads, runs]
  for (const { runId } of runs.slice(0, 12)) texts.push(await collect(log.read({ kind: 'run', id: runId })))
  for (const { threadId } of threads) {
    const ref = { kind: 'thread', id: threadId } as const
    await log.claim(ref, 'reader', 60_000)
    texts.push(await collect(log.read<LogEvent>(ref)), await log.takePosts(ref, 'reader'))
    await log.claim(ref, 'reader', 0)
  }
  // An index of files may not have given a log its place yet.
  return JSON.stringify(texts, (name, value: unknown) => (name === 'cursor' ? undefined : value))
}

describe.each(all)('a cipher of a log in %s', (name, placed) => {
  const ciphers: (readonly [string, () => Cipher])[] = [
    ['encrypted', () => cipherOf('k1', { hideOwners: true, compress: true })],
    ...(name === 'PostgreSQL' ? [] : [['compressed', () => compression()] as const]),
  ]
  describe.each(ciphers)('%s', (_form, cipher) => {
    const places = new WeakMap<LogStore, Pick<Place, 'open'>>()
    const open = (place = placed()): LogStore => {
      const log = place.open(cipher())
      places.set(log, place)
      return log
    }
    const laws = runLogContract({ open: () => open(), reopen: (log) => open(places.get(log)) })
    for (const law of laws) test(`the contract of a log holds: ${law.name}, ${law.says}`, law.check, 60_000)
  })
})

describe.each(withBytes)('an encrypted log in %s', (_name, placed) => {
  test('none of 1,000 texts of runs, conversations and posts stands in a byte of it, and all are given back', async () => {
    const place = placed()
    const log = place.open(cipherOf())
    const planted = await plant(log)
    expect(planted).toBeGreaterThan(1000)
    expect(await place.holds(PLANTED)).toBe(false)
    // No diff: the texts are long.
    expect((await given(place.open(cipherOf()))) === (await given(log))).toBe(true)
    expect((await given(log)).split(PLANTED).length).toBeGreaterThan(500)
    // The lists have made an index.
    expect(await place.holds(PLANTED)).toBe(false)
    await using sessions = new Sessions({
      log: place.open(cipherOf()),
      harness: harnessOf({ model: new ScriptedModel() }),
    })
    expect(await collect(sessions.inbox())).toMatchObject([
      { threadId: 'chat', resourceId: 'ann', item: { toolName: 'pay' } },
    ])
  }, 60_000)

  test('the same texts stand in a log without cipher, until it is encrypted by `rekey`', async () => {
    const place = placed()
    const clear = place.open()
    await plant(clear)
    expect(await place.holds(PLANTED)).toBe(true)
    const before = await given(clear)
    const { rewritten, left, erased } = await rekey(clear, cipherOf('k1', { hideOwners: true }))
    expect([rewritten > 80, left, await rekey(clear, cipherOf('k1', { hideOwners: true }))]).toEqual([
      true,
      [],
      { rewritten: 0, left: [], erased },
    ])
    expect((await given(clear)) === before).toBe(true)
    expect((await given(place.open(cipherOf('k1', { hideOwners: true })))) === before).toBe(true)
    if (erased) expect(await place.holds(PLANTED)).toBe(false)
  }, 60_000)

  test('a record that is changed, cut, or put in the place of another is found', async () => {
    const place = placed()
    const log = place.open(cipherOf())
    for (const runId of ['run_a', 'run_b', 'run_c', 'run_d']) await store(log, runId, runId)
    await place.swap(['run_a', 'run_b'], 2)
    await place.change('run_c', 2, (stored) => stored.slice(0, -24))
    await place.change('run_d', 2, () => JSON.stringify(event(2, 'forged')))
    for (const runId of ['run_a', 'run_b']) {
      await expect(eventsOfRun(log, runId)).rejects.toEqual(failing('invalid_log', 'event 2 cannot be decrypted'))
      await expect(eventsOfRun(place.open(cipherOf()), runId)).rejects.toEqual(failing('invalid_log', runId))
    }
    await expect(eventsOfRun(log, 'run_c')).rejects.toEqual(failing('invalid_log', 'event 2 cannot be decrypted'))
    await expect(eventsOfRun(log, 'run_d')).rejects.toEqual(failing('invalid_log', 'event 2 is not encrypted'))
    await place.change('run_c', 2, () => 'aes1:text:k1:AAAA')
    await expect(eventsOfRun(log, 'run_c')).rejects.toEqual(failing('invalid_log', 'event 2 was cut'))
  })

  test('without its cipher, its key or the name of its key it is `invalid_log`, and a list says so', async () => {
    const place = placed()
    await store(place.open(cipherOf()), 'run_a')
    await place.open(cipherOf()).append({ kind: 'thread', id: 'chat' }, [event(1, 'text')], { digest: { title: 'T' } })
    const others: (readonly [Cipher | undefined, string])[] = [
      [undefined, 'the log was opened without `cipher`'],
      [compression(), 'the log was opened without `cipher`'],
      [encryption({ key: () => randomBytes(32), keyId: 'k1' }), '`k1` is another key now'],
      [
        encryption({ key: (id) => (id === 'k9' ? KEYS['k1'] : undefined), keyId: 'k9' }),
        'encrypted with key `k1`, which',
      ],
    ]
    for (const [cipher, says] of others) {
      const log = place.open(cipher)
      await expect(eventsOfRun(log, 'run_a')).rejects.toEqual(failing('invalid_log', says))
      await expect(log.inspect({ kind: 'run', id: 'run_a' })).rejects.toEqual(failing('invalid_log'))
      await expect(collect(log.export('run_a'))).rejects.toEqual(failing('invalid_log'))
      expect(await collect(log.list())).toMatchObject([{ status: 'unreadable', error: { code: 'invalid_log' } }])
      expect(await collect(log.list({ kind: 'thread' }))).toMatchObject([{ error: { code: 'invalid_log' } }])
    }
    expect(await eventsOfRun(place.open(cipherOf()), 'run_a')).toHaveLength(3)
  })

  test('events that are not encrypted are read with `readsClear` only, and may be continued encrypted', async () => {
    const place = placed()
    await store(place.open(), 'run_a')
    const strict = place.open(cipherOf())
    await expect(eventsOfRun(strict, 'run_a')).rejects.toEqual(failing('invalid_log', 'event 1 is not encrypted'))
    const lax = place.open(cipherOf('k1', { readsClear: true }))
    await lax.append({ kind: 'run', id: 'run_a' }, [event(4, 'text 4')])
    expect((await eventsOfRun(lax, 'run_a')).map(({ seq }) => seq)).toEqual([1, 2, 3, 4])
    expect(await rekey(lax, cipherOf())).toMatchObject({ rewritten: 1, left: [] })
    expect(await eventsOfRun(strict, 'run_a')).toHaveLength(4)
  })

  test('a new key is used for what is written, and `rekey` needs the former one no more', async () => {
    const place = placed()
    await store(place.open(cipherOf('k1')), 'run_a')
    const both = place.open(cipherOf('k2'))
    await store(both, 'run_b')
    expect(await eventsOfRun(both, 'run_a')).toHaveLength(3)
    expect(await rekey(both, cipherOf('k2'))).toMatchObject({ rewritten: 1, left: [] })
    const alone = place.open(encryption({ key: (id) => (id === 'k2' ? KEYS['k2'] : undefined), keyId: 'k2' }))
    for (const runId of ['run_a', 'run_b']) expect(await eventsOfRun(alone, runId)).toHaveLength(3)
    expect(await place.holds('text:k1:')).toBe(!(await rekey(alone, cipherOf('k2'))).erased)
  })

  test('a log that a process owns, or that cannot be read, is left as it is and named', async () => {
    const place = placed()
    const [owned, damaged] = [{ kind: 'run', id: 'run_a' } as const, { kind: 'run', id: 'run_b' } as const]
    const log = place.open(cipherOf('k1'))
    await log.claim(owned, 'owner', 60_000)
    await log.append(owned, [event(1, 'text')], { owner: 'owner' })
    await store(log, 'run_b')
    await place.change('run_b', 2, (stored) => stored.slice(0, -24))
    await store(log, 'run_c')
    const other = place.open(cipherOf('k1'))
    const { rewritten, left } = await rekey(other, cipherOf('k2'))
    expect([rewritten, left.map(({ id }) => id).sort()]).toEqual([1, ['run_a', 'run_b']])
    await log.append(owned, [event(2, 'text')], { owner: 'owner' })
    await log.claim(owned, 'owner', 0)
    expect(await rekey(other, cipherOf('k2'))).toMatchObject({ rewritten: 1, left: [damaged] })
    expect(await eventsOfRun(other, 'run_a')).toHaveLength(2)
  })

  test('owners are not named with `hideOwners`, and their logs are found before and after a change of the key', async () => {
    const place = placed()
    const [owner, id] = ['zo3-q', 'run_1']
    const begin = { metadata: { resourceId: owner, note: 'x' }, runId: id, parentRunId: null }
    const write = (cipher: Cipher, runId: string): Promise<void> =>
      place.open(cipher).append({ kind: 'thread', id: runId }, [event(1, 'text', { ...begin, threadId: runId })], {
        digest: { resourceId: owner },
      })
    const found = async (cipher: Cipher, resourceId = owner): Promise<string[]> => {
      const threads = await collect(place.open(cipher).list({ kind: 'thread', resourceId }))
      return threads.map(({ threadId }) => threadId).sort()
    }
    const hiding = (keyId: string): Cipher => cipherOf(keyId, { hideOwners: true })
    await write(hiding('k1'), 'a')
    await write(hiding('k2'), 'b')
    expect(await place.holds(owner)).toBe(false)
    await write(cipherOf('k1'), 'c')
    for (const cipher of [hiding('k1'), hiding('k2'), cipherOf('k2')]) {
      expect(await found(cipher)).toEqual(['a', 'b', 'c'])
      expect(await found(cipher, 'other')).toEqual([])
    }
    const { erased } = await rekey(place.open(hiding('k1')), hiding('k2'))
    expect(await found(hiding('k2'))).toEqual(['a', 'b', 'c'])
    if (erased) expect(await place.holds(owner)).toBe(false)
  })

  test('`follow` reads on while the log is encrypted and another process writes', async () => {
    const place = placed()
    const [writer, reader] = [place.open(cipherOf()), place.open(cipherOf())]
    const ref = { kind: 'run', id: 'run_a' } as const
    await store(writer, 'run_a')
    const seen: number[] = []
    for await (const { seq } of reader.follow!(ref)) {
      seen.push(seq)
      if (seq === 3) await writer.append(ref, [event(4, 'text 4')])
      if (seq === 4) break
    }
    expect(seen).toEqual([1, 2, 3, 4])
  })

  test('old logs are compressed by `rekey`, to less than half of their size, and read without a cipher never', async () => {
    const place = placed()
    const log = place.open()
    await store(log, 'run_a', 'the same words again and again '.repeat(100))
    const before = await eventsOfRun(log, 'run_a')
    expect(await rekey(log, compression())).toMatchObject({ rewritten: 1, left: [] })
    expect(await eventsOfRun(place.open(compression()), 'run_a')).toEqual(before)
    await expect(eventsOfRun(place.open(), 'run_a')).rejects.toEqual(failing('invalid_log', 'event 1 is compressed'))
    let length = 0
    await place.change('run_a', 1, (stored) => {
      length = stored.length
      return stored
    })
    expect(length).toBeLessThan(JSON.stringify(before[0]).length / 2)
  })
})

describe('encryption', () => {
  const place = { ref: { kind: 'run', id: 'run_a' }, part: 'event', key: 1 } as const

  test('whatever character of a record is changed, and wherever it is moved, it is not read', async () => {
    const codec = await cipherOf().load()
    const moved = fc.oneof(
      fc.record({
        ref: fc.constant({ kind: 'thread', id: 'run_a' } as const),
        part: fc.constant('event' as const),
        key: fc.constant(1),
      }),
      fc.record({
        ref: fc.constant({ kind: 'run', id: 'run_b' } as const),
        part: fc.constant('event' as const),
        key: fc.constant(1),
      }),
      fc.record({ ref: fc.constant(place.ref), part: fc.constantFrom('post', 'digest'), key: fc.constant(1) }),
      fc.record({ ref: fc.constant(place.ref), part: fc.constant('event' as const), key: fc.constantFrom(2, '1') }),
    )
    fc.assert(
      fc.property(
        fc.json(),
        fc.nat(),
        fc.constantFrom('A', 'a', '0', '+', '/', '=', ':', '{'),
        moved,
        (json, at, character, elsewhere) => {
          const stored = codec.encode(json, place)
          expect(codec.decode(stored, place)).toBe(json)
          expect(() => codec.decode(stored, elsewhere)).toThrow(HarnessError)
          const index = at % (stored.length - 3)
          const changed = stored.slice(0, index) + character + stored.slice(index + 1)
          if (changed !== stored) expect(() => codec.decode(changed, place)).toThrow(HarnessError)
          expect(() => codec.decode(stored.slice(0, index), place)).toThrow(HarnessError)
        },
      ),
      { numRuns: 200 },
    )
  })

  test('options that encrypt nothing are refused, and no message shows a key', () => {
    const key = new Uint8Array(16).fill(7)
    const refused = (options: object): unknown => {
      try {
        return encryption(options as Parameters<typeof encryption>[0])
      } catch (error) {
        return error
      }
    }
    const cases: (readonly [object, string])[] = [
      [{ key: () => key, keyId: 'k1' }, 'to give 32 bytes for `k1`, got 16 bytes'],
      [{ key: async () => KEYS['k1'], keyId: 'k1' }, 'got a promise'],
      [{ key: () => undefined, keyId: 'k1' }, 'it gives none'],
      [{ key: () => 'a secret text', keyId: 'k1' }, 'got a string'],
      [{ key: () => KEYS['k1'], keyId: 'k:1' }, 'keyId'],
      [{ key: () => KEYS['k1'] }, 'keyId'],
    ]
    for (const [options, says] of cases) expect(refused(options)).toEqual(failing('invalid_options', says))
    expect(String(refused({ key: () => 'a secret text', keyId: 'k1' }))).not.toContain('secret')
  })

  test('`rekey` refuses a log that it cannot write anew, and what is no cipher', async () => {
    const log = memoryPlace().open()
    await expect(rekey({} as LogStore, cipherOf())).rejects.toEqual(failing('invalid_options', 'one of the package'))
    await expect(rekey(log, {} as Cipher)).rejects.toEqual(failing('invalid_options', 'encryption'))
    await store(log, 'run_a')
    expect(await rekey(log, cipherOf())).toMatchObject({ rewritten: 1, left: [], erased: true })
    expect(await eventsOfRun(log, 'run_a')).toHaveLength(3)
  })
})
