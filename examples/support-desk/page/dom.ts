/** An element with attributes, listeners (`onclick`) and children. Text is always text: no markup of a model is interpreted. */
export function h<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Readonly<Record<string, string | ((event: Event) => void)>> = {},
  ...children: readonly (Node | string)[]
): HTMLElementTagNameMap[Name] {
  const element = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(key.slice('on'.length), value)
    else element.setAttribute(key, value)
  }
  element.append(...children)
  return element
}

/** The element of the page with that id. */
export function byId(id: string): HTMLElement {
  const element = document.getElementById(id)
  if (element === null) throw new Error(`The page has no element #${id}.`)
  return element
}

/** Sends a request with JSON. Rejects with the sentence of the server if it is refused. */
export async function ask<T>(path: string, body?: object): Promise<T> {
  const init = body && { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
  const response = await fetch(path, init)
  const answer = (await response.json().catch(() => ({}))) as { readonly message?: string }
  if (!response.ok) throw new Error(answer.message ?? 'The server could not be reached.')
  return answer as T
}

/** Shows what goes wrong with a request in the alert of the page. */
export async function shown(request: Promise<unknown>): Promise<boolean> {
  const problem = byId('problem')
  try {
    await request
    problem.textContent = ''
    return true
  } catch (error) {
    problem.textContent = error instanceof Error ? error.message : 'Something went wrong.'
    return false
  }
}
