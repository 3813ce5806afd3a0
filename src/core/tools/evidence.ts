/** A quotation and its source, as the model gives them. */
export type Evidence = FileEvidence | RowEvidence | CallEvidence

/** Lines of a file of the workspace, counted from 1. Without `to_line` one line. */
export interface FileEvidence {
  readonly file: string
  readonly from_line: number
  readonly to_line?: number | undefined
  readonly quote: string
}

/** A row of a JSONL file of the workspace by its line, counted from 1; `path` such as `user.tags[0]`, default the whole row. */
export interface RowEvidence {
  readonly file: string
  readonly row: number
  readonly path?: string | undefined
  readonly quote: string
}

/** The result of a tool call in the conversation. */
export interface CallEvidence {
  readonly call_id: string
  readonly quote: string
}

/** Resolves to the problem of a piece of evidence; `undefined` if it is correct. */
export type CheckEvidence = (evidence: Evidence) => Promise<string | undefined>
