import { act, createElement, StrictMode } from 'react'
import type { ReactNode } from 'react'
import { onTestFinished, vi } from 'vitest'

/** As much of a document as React needs for components that render nothing. */
class PlainNode extends EventTarget {
  readonly nodeType: number
  readonly nodeName = 'DIV'
  readonly tagName = 'DIV'
  readonly namespaceURI = 'http://www.w3.org/1999/xhtml'
  readonly ownerDocument: PlainNode | null
  textContent = ''
  readonly activeElement = null

  constructor(ownerDocument: PlainNode | null) {
    super()
    this.nodeType = ownerDocument === null ? 9 : 1
    this.ownerDocument = ownerDocument
  }
}

interface Mounted {
  readonly render: (element: ReactNode) => Promise<void>
  readonly unmount: () => Promise<void>
}

/** Mounts a component that renders nothing, in StrictMode if `isStrict`. */
export async function mounted(element: ReactNode, isStrict = false): Promise<Mounted> {
  const document = new PlainNode(null)
  const ignored = (): undefined => undefined
  vi.stubGlobal('window', {
    ...{ document, HTMLIFrameElement: PlainNode, addEventListener: ignored, removeEventListener: ignored },
  })
  vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true)
  const { createRoot } = await import('react-dom/client')
  const root = createRoot(new PlainNode(document))
  const render = (next: ReactNode): Promise<void> =>
    act(async () => root.render(isStrict ? createElement(StrictMode, null, next) : next))
  const unmount = (): Promise<void> => act(async () => root.unmount())
  onTestFinished(async () => {
    await unmount()
    vi.unstubAllGlobals()
  })
  await render(element)
  return { render, unmount }
}
