const PATHS = {
  search: 'M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM10.7 10.7 14 14',
  problems: 'M8 2 14.5 13.5h-13zM8 6.5v3M8 11.6v.1',
  plots: 'M2 13.5h12M3 11l3.5-4 3 2.5L14 4',
  theme: 'M8 2a6 6 0 1 0 0 12zM8 2a6 6 0 0 1 0 12',
  save: 'M8 2.5v7.5M5 7.2 8 10l3-2.8M2.5 13.5h11',
  help: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM6.3 6.2a1.8 1.8 0 1 1 2.6 1.7c-.6.3-.9.6-.9 1.2M8 11.2v.1',
  close: 'M4 4l8 8M12 4l-8 8',
  copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
  text: 'M3 4V2.500h10V4M8 2.500v11M6 13.500h4',
  link: 'M6.5 9.5l3-3M7.5 4.5 9 3a2.8 2.8 0 0 1 4 4l-1.5 1.5M8.500 11.500 7 13a2.800 2.800 0 0 1-4-4l1.500-1.500',
  back: 'M10 3 5 8l5 5',
  open: 'M6 3l5 5-5 5',
} as const

interface IconButtonProps {
  readonly icon: keyof typeof PATHS
  /** What it does, with its key. */
  readonly label: string
  readonly onClick: () => void
  readonly isPressed?: boolean
}

/** A button with a picture; its name is in its tooltip, and for screen readers. */
export function IconButton({ icon, label, onClick, isPressed }: IconButtonProps) {
  const pressed = isPressed === undefined ? {} : { 'aria-pressed': isPressed }
  return (
    <button type="button" class="icon" title={label} aria-label={label} onClick={onClick} {...pressed}>
      <svg viewBox="0 0 16 16" aria-hidden="true">
        <path d={PATHS[icon]} />
      </svg>
    </button>
  )
}
