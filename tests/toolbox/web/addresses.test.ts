import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isPublicAddress } from '#toolbox/web/addresses.js'
import { fetchUrl } from '#toolbox/web/fetch-url.js'
import type { FetchUrlOptions } from '#toolbox/web/options.js'
import { fetched, LOOPBACK, serve } from './support.js'

test.each([
  ...['8.8.8.8', '1.1.1.1', '100.63.255.255', '172.32.0.1', '192.169.0.1', '223.255.255.255'].map((each) => [
    each,
    true,
  ]),
  ...['2606:4700:4700::1111', '2a00:1450:4001::1', '2620:fe::fe'].map((each) => [each, true]),
  ...['0.0.0.0', '10.1.2.3', '100.64.0.1', '127.0.0.1', '127.255.255.255', '169.254.169.254'].map((each) => [
    each,
    false,
  ]),
  ...['172.16.0.1', '172.31.255.255', '192.0.0.1', '192.0.2.1', '192.168.1.1', '198.18.0.1'].map((each) => [
    each,
    false,
  ]),
  ...['198.51.100.1', '203.0.113.1', '224.0.0.1', '240.0.0.1', '255.255.255.255'].map((each) => [each, false]),
  ...['::', '::1', '::ffff:127.0.0.1', '::ffff:7f00:1', '::ffff:8.8.8.8', '::127.0.0.1'].map((each) => [each, false]),
  ...['64:ff9b::7f00:1', '2002:7f00:1::', '2001::1', '2001:db8::1', 'fc00::1', 'fd00:ec2::254'].map((each) => [
    each,
    false,
  ]),
  ...['fe80::1', 'fe80::1%eth0', 'ff02::1', '100::1', '3fff::1', '5f00::1', '4000::1'].map((each) => [each, false]),
  ...['', 'localhost', '127.1', '0x7f000001', '2130706433', '8.8.8.8.'].map((each) => [each, false]),
] as [string, boolean][])('the address %s is public: %s', (address, expected) => {
  expect(isPublicAddress(address)).toBe(expected)
})

test('any string yields a result', () => {
  fc.assert(fc.property(fc.string(), (text) => typeof isPublicAddress(text) === 'boolean'))
})

/** Counts what reaches the loopback server, which nothing may. */
async function guarded(): Promise<{ port: number; hits: () => number }> {
  let hits = 0
  const port = await serve((_request, response) => {
    hits++
    response.end('secret')
  })
  return { port, hits: () => hits }
}

const REFUSED = { ok: false, metadata: { error_type: 'FetchRefused' } }

describe('addresses that are not public', () => {
  test.each([
    '127.0.0.1',
    '127.1',
    '0x7f.0.0.1',
    '0x7f000001',
    '2130706433',
    '0177.0.0.1',
    '127.0.0.1.',
    '１２７.０.０.１',
    '127。0。0。1',
    '0',
    '0.0.0.0',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[::]',
    '[0:0:0:0:0:0:0:1]',
    'localhost',
    'localhost.',
    'LOCALHOST',
  ])('%s is rejected, and nothing is sent', async (host) => {
    const { port, hits } = await guarded()
    expect(await fetched({ url: `http://${host}:${port}/` }, { allowPrivate: false })).toMatchObject(REFUSED)
    expect(hits()).toBe(0)
  })

  test.each([
    '169.254.169.254',
    '[fd00:ec2::254]',
    '[fe80::a9fe:a9fe]',
    '100.100.100.200',
    '192.168.0.1',
    '[64:ff9b::a9fe:a9fe]',
  ])('metadata services and local networks: %s', async (host) => {
    const result = await fetched({ url: `http://${host}/latest/meta-data/` }, { allowPrivate: false })
    expect(result).toMatchObject(REFUSED)
    expect(result.content).toContain('not public')
  })

  test('a name that resolves to one is rejected, even if only one of its addresses is not public', async () => {
    const { port, hits } = await guarded()
    for (const addresses of [[LOOPBACK], [{ address: '93.184.216.34', family: 4 } as const, LOOPBACK]]) {
      const result = await fetched(
        { url: `http://rebind.test:${port}/` },
        { allowPrivate: false, lookup: async () => addresses },
      )
      expect(result).toMatchObject(REFUSED)
    }
    expect(hits()).toBe(0)
  })

  test('a redirect to one is rejected, even if the first host was allowed', async () => {
    const { port: inner, hits } = await guarded()
    const targets = [
      `http://127.0.0.1:${inner}/`,
      `http://localhost:${inner}/`,
      `//[::1]:${inner}/`,
      'file:///etc/hostname',
      'gopher://x/',
    ]
    const port = await serve(({ url = '' }, response) => {
      response.writeHead(302, { location: targets[Number(url.slice(1))] }).end()
    })
    for (const index of targets.keys()) {
      const result = await fetched(
        { url: `http://site.test:${port}/${index}` },
        { allowPrivate: ['site.test'], lookup: async () => [LOOPBACK] },
      )
      expect(result).toMatchObject(REFUSED)
    }
    expect(hits()).toBe(0)
  })

  test('a name that changes its address between check and use leads nowhere else: it is resolved once per hop', async () => {
    const { port: inner, hits } = await guarded()
    const asked: string[] = []
    const port = await serve((request, response) => {
      if (request.url === '/end') response.end('arrived')
      else response.writeHead(307, { location: '/end' }).end()
    })
    const result = await fetched(
      { url: `http://site.test:${port}/` },
      {
        allowPrivate: ['site.test'],
        lookup: async (name) => {
          asked.push(name)
          return asked.length <= 2 ? [LOOPBACK] : [{ address: '127.0.0.2', family: 4 }]
        },
      },
    )
    expect(result).toMatchObject({ ok: true, content: `fetched http://site.test:${port}/end\n\narrived` })
    expect(asked).toEqual(['site.test', 'site.test'])
    expect([hits(), inner > 0]).toEqual([0, true])
  })

  test('`allowPrivate` as a list allows only these hosts', async () => {
    const { port, hits } = await guarded()
    const options: FetchUrlOptions = { allowPrivate: ['*.corp.test', '127.0.0.1'], lookup: async () => [LOOPBACK] }
    const urls = ['wiki.corp.test', '127.0.0.1', 'corp.test', 'evilcorp.test', 'localhost'].map(
      (host) => `http://${host}:${port}/`,
    )
    const answers = await Promise.all(urls.map(async (url) => (await fetched({ url }, options)).ok))
    expect(answers).toEqual([true, true, false, false, false])
    expect(hits()).toBe(2)
  })
})

describe('hosts', () => {
  test.each<[string, FetchUrlOptions, string, boolean]>([
    ['an allowed host', { allowHosts: ['docs.test'] }, 'docs.test', true],
    ['an allowed host in capitals and with its dot', { allowHosts: ['Docs.Test'] }, 'DOCS.test.', true],
    ['a host below an allowed one', { allowHosts: ['docs.test'] }, 'a.docs.test', false],
    ['a host below, by a star', { allowHosts: ['*.docs.test'] }, 'a.b.docs.test', true],
    ['a star does not mean the name itself', { allowHosts: ['*.docs.test'] }, 'docs.test', false],
    ['a star does not mean a longer name', { allowHosts: ['*.docs.test'] }, 'evildocs.test', false],
    ['no host is allowed', { allowHosts: [] }, 'docs.test', false],
    ['a denied host', { denyHosts: ['docs.test'] }, 'docs.test', false],
    ['denied wins', { allowHosts: ['*.test'], denyHosts: ['*.docs.test'] }, 'a.docs.test', false],
    ['an international name', { allowHosts: ['bücher.test'] }, 'xn--bcher-kva.test', true],
  ])('%s', async (_name, options, host, expected) => {
    const port = await serve((_request, response) => response.end('page'))
    const result = await fetched({ url: `http://${host}:${port}/` }, { ...options, lookup: async () => [LOOPBACK] })
    expect(result.ok).toBe(expected)
    if (!expected) expect(result).toMatchObject(REFUSED)
  })

  test('the host of a redirect must be allowed too', async () => {
    const port = await serve(({ url }, response) => {
      if (url === '/page') response.end('page')
      else response.writeHead(301, { location: `http://other.test:${port}/page` }).end()
    })
    const options: FetchUrlOptions = { lookup: async () => [LOOPBACK] }
    const url = `http://docs.test:${port}/`
    expect(await fetched({ url }, { ...options, allowHosts: ['docs.test'] })).toMatchObject(REFUSED)
    expect((await fetched({ url }, { ...options, allowHosts: ['*.test'] })).ok).toBe(true)
  })

  test.each<[object, string]>([
    [{ allowHosts: ['https://docs.test'] }, 'got `https://docs.test`'],
    [{ allowHosts: ['docs.test:80'] }, 'got `docs.test:80`'],
    [{ denyHosts: ['*'] }, 'got `*`'],
    [{ allowPrivate: 'yes' }, 'Expected `allowPrivate` of `fetchUrl` to be a boolean or a list of hosts'],
    [{ allowHost: [] }, 'Unknown option of `fetchUrl`: `allowHost`. Did you mean `allowHosts`?'],
    [{ timeoutMs: 0 }, 'Expected `timeoutMs` of `fetchUrl` to be a whole number from 1 to 2147483647, got `0`.'],
    [{ userAgent: 'a\r\nb: c' }, 'Expected `userAgent`'],
    [{ lookup: {} }, 'Expected `lookup` of `fetchUrl` to be a function, got an object.'],
  ])('the options %j are rejected', (options, message) => {
    expect(() => fetchUrl(options as FetchUrlOptions)).toThrow(message)
  })
})
