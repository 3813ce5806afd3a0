import type { JsonSchema } from '#util/json.js'
import type { ProjectionOptions } from '../projection.js'
import type { AgUiMessage } from './message.js'
import type { HeldMessage } from './sink.js'

/** Options of AG-UI streams. */
export interface AgUiOptions extends ProjectionOptions {
  /** Default: `metadata.conversation_id` of the run, else its id. */
  readonly threadId?: string | undefined
  /** The id that the client has given to this stretch. Default: the id of the run. */
  readonly runId?: string | undefined
  /** The messages of the thread's earlier runs: `toAgUiMessages` makes them. Default: none. */
  readonly history?: readonly AgUiMessage[] | undefined
  /**
   * The messages that the client has. The stream begins with a snapshot, after which the client has what the log has. Default: a
   * client of a first run has its prompt, and gets no snapshot.
   */
  readonly held?: readonly HeldMessage[] | undefined
  /** Calls as activities too. Default false. */
  readonly activities?: boolean | undefined
  /** JSON Schemas of the arguments of tools, by name, for people who edit them. */
  readonly toolSchemas?: Readonly<Record<string, JsonSchema>> | undefined
  /**
   * The ids of the messages with which a run began. Default: `metadata.message_id` of the run, else the id of the entry.
   */
  readonly messageIds?: ((runId: string) => readonly string[]) | undefined
}
