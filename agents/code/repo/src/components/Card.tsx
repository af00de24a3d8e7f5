import type { ReactNode } from "react";

export interface CardProps {
  title: string;
  children: ReactNode;
  footer?: ReactNode;
}

/**
 * A box with a title.
 *
 * @prop {string} title - The words at the top.
 * @prop {ReactNode} children - What is in the box.
 * @prop {ReactNode} [footer] - What stands below a line at the bottom.
 */
export function Card({ title, children, footer }: CardProps) {
  return (
    <section className="card">
      <h2>{title}</h2>
      {children}
      {footer && <footer>{footer}</footer>}
    </section>
  );
}
