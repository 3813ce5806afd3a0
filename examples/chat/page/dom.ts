type Child = Node | string | null

/** An element with attributes, listeners (`onclick`) and children. Text is always text: no markup of a model is interpreted. */
export function h<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Readonly<Record<string, string | boolean | ((event: Event) => void)>> = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Name] {
  const element = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(key.slice('on'.length), value)
    else if (value !== false) element.setAttribute(key, value === true ? '' : value)
  }
  element.append(...children.filter((child) => child !== null))
  return element
}

/** The element of the page with that id. */
export function byId(id: string): HTMLElement {
  const element = document.getElementById(id)
  if (element === null) throw new Error(`The page has no element #${id}.`)
  return element
}

/**
 * Shows a list: an element for each item, by key. An item that has not changed keeps its element, and so its focus, its open
 * details and what a person has typed.
 */
export class KeyedList<Item> {
  readonly #parent: HTMLElement
  readonly #keyOf: (item: Item) => string
  readonly #render: (item: Item, before: HTMLElement | null) => HTMLElement
  #shown = new Map<string, { readonly item: Item; readonly element: HTMLElement }>()

  constructor(
    parent: HTMLElement,
    keyOf: (item: Item) => string,
    render: (item: Item, before: HTMLElement | null) => HTMLElement,
  ) {
    this.#parent = parent
    this.#keyOf = keyOf
    this.#render = render
  }

  show(items: readonly Item[]): void {
    const shown = new Map<string, { readonly item: Item; readonly element: HTMLElement }>()
    items.forEach((item, index) => {
      const key = this.#keyOf(item)
      const before = this.#shown.get(key)
      const element = before?.item === item ? before.element : this.#render(item, before?.element ?? null)
      if (before !== undefined && before.element !== element) before.element.replaceWith(element)
      shown.set(key, { item, element })
      if (this.#parent.children[index] !== element)
        this.#parent.insertBefore(element, this.#parent.children[index] ?? null)
    })
    for (const [key, { element }] of this.#shown) if (!shown.has(key)) element.remove()
    this.#shown = shown
  }
}
