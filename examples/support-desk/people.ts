// Who asks. Replace this file with the sign-in of your app: nothing else in the example knows how people prove who they are.
export interface Person {
  readonly id: string
  readonly name: string
}

export type Role = 'customer' | 'staff'

/** By their tokens. */
const PEOPLE: Readonly<Record<Role, ReadonlyMap<string, Person>>> = {
  customer: new Map([
    ['ada-7d1f', { id: 'ada', name: 'Ada' }],
    ['ben-93c2', { id: 'ben', name: 'Ben' }],
  ]),
  staff: new Map([['sam-e05b', { id: 'sam', name: 'Sam' }]]),
}

const HOMES: Readonly<Record<Role, string>> = { customer: '/', staff: '/staff/' }

/** The person who sends a request; undefined if nobody has signed in as that. */
export function personOf({ headers }: Request, role: Role): Person | undefined {
  const [, bearer] = /^Bearer (\S+)$/.exec(headers.get('authorization') ?? '') ?? []
  const [, cookie] = new RegExp(`(?:^|; )${role}=([^;]+)`).exec(headers.get('cookie') ?? '') ?? []
  return PEOPLE[role].get(bearer ?? cookie ?? '')
}

/** The addresses that sign people in, for the console. */
export function signInLinks(origin: string): readonly string[] {
  return (['customer', 'staff'] as const).flatMap((role) =>
    [...PEOPLE[role]].map(([token, { name }]) => `${role} ${name}: ${origin}${HOMES[role]}?token=${token}`),
  )
}

/** A page opened with a token: keeps it as a cookie, and opens the page without it. Null for any other request. */
export function signIn({ url }: Request): Response | null {
  const { pathname, searchParams } = new URL(url)
  const token = searchParams.get('token')
  const role = pathname === HOMES.staff ? 'staff' : 'customer'
  if (token === null || pathname !== HOMES[role]) return null
  // `SameSite` keeps other sites from sending requests in a person's name. Add `Secure` behind HTTPS.
  const cookie = `${role}=${encodeURIComponent(token)}; Path=${pathname}; HttpOnly; SameSite=Strict`
  return new Response(null, { status: 303, headers: { location: pathname, 'set-cookie': cookie } })
}
