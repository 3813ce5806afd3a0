import type { Answer, Harness, HarnessResult, StreamEvent } from 'thinharness'

/** `ipcMain` of Electron, as far as it is used. */
export interface IpcMain {
  handle(channel: string, listener: (call: IpcCall, ...args: never[]) => unknown): void
}
export interface IpcCall {
  readonly sender: { send(channel: string, event: StreamEvent): void }
}

/** In the main process: the window asks and answers by `ipcRenderer.invoke`, and gets events by `ipcRenderer.on`. */
export function serveWindow(ipcMain: IpcMain, harness: Harness): void {
  const show = async ({ sender }: IpcCall, stream: ReturnType<Harness['stream']>) => {
    for await (const event of stream) sender.send('agent:event', event)
    return shownResult(await stream.result)
  }
  ipcMain.handle('agent:ask', (call, prompt: string) => show(call, harness.stream(prompt)))
  ipcMain.handle('agent:answer', (call, runId: string, answers: readonly Answer[]) =>
    show(call, harness.streamResume(runId, answers)),
  )
}

/** What a window needs of a result; everything in it can be cloned. */
function shownResult({ runId, status, text, pending }: HarnessResult) {
  return { runId, status, text, pending }
}
