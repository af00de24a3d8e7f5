import type { MouseEvent, ReactNode } from "react";

// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type ButtonProps = any;

/**
 * A button that does one thing when it is pressed.
 *
 * @prop {string} label - The text on the button.
 * @prop {"primary" | "secondary" | "danger"} [variant="primary"] - How much it stands out.
 * @prop {boolean} [disabled=false] - Whether it cannot be pressed.
 * @prop {ReactNode} [icon] - What stands in front of the label.
 * @prop {(event: MouseEvent<HTMLButtonElement>) => void} onClick - What happens when it is pressed.
 */
export function Button({
  label,
  variant = "primary",
  disabled = false,
  icon,
  onClick,
}: ButtonProps) {
  return (
    <button className={`button button-${variant}`} disabled={disabled} onClick={onClick}>
      {icon}
      <span>{label}</span>
    </button>
  );
}
