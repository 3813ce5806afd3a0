import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { isObject, jsonOr } from '#util/json.js'
import type { ServerSocket } from './wire/websocket.js'

/**
 * An answer over HTTP that is sent over a WebSocket: each event of a stream is a message, and an error is one with its status and its
 * headers. A stream that ends before its last event closes the connection.
 */
export function socketAnswer(socket: ServerSocket): ServerResponse {
  let [status, headers]: [number, unknown] = [200, {}]
  let text = ''
  let last = ''
  const answer = Object.assign(new EventEmitter(), {
    destroyed: false,
    headersSent: false,
    socket: { resetAndDestroy: () => answer.destroy() },
    writeHead(...given: [number, unknown]) {
      ;[status, headers] = given
      answer.headersSent = true
    },
    write(piece: string | Buffer, done?: () => void) {
      text += piece.toString()
      for (let end = text.indexOf('\n\n'); status < 400 && end >= 0; end = text.indexOf('\n\n')) {
        last = /^data: (.*)$/m.exec(text.slice(0, end))?.[1] ?? ''
        text = text.slice(end + 2)
        socket.send(last)
      }
      done?.()
    },
    end(piece: string | Buffer = '') {
      answer.write(piece)
      if (status >= 400) socket.send(JSON.stringify({ type: 'error', status, ...errorIn(text), headers }))
      else if (!/"type":"(?:response\.(?:completed|incomplete|failed)|error)"/.test(last)) socket.close()
    },
    destroy() {
      answer.destroyed = true
      socket.cut()
    },
  })
  return answer as unknown as ServerResponse
}

function errorIn(text: string): object {
  const body = jsonOr(text, undefined)
  return isObject(body) ? body : { error: { message: text } }
}
