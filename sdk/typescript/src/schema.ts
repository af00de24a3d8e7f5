/** JSON Schemas that know the type of what they allow. */

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

declare const type: unique symbol;

/** A schema of a value of type `T`. */
export interface Schema<T> {
  readonly json: JsonObject;
  readonly optional: boolean;
  readonly [type]?: T;
}

type Properties = Record<string, Schema<unknown>>;
type Value<S> = S extends Schema<infer T> ? T : never;
type Optional<P> = { [K in keyof P]: undefined extends Value<P[K]> ? K : never }[keyof P];

/** The arguments that a tool's properties allow. */
export type Arguments<P> = { [K in Exclude<keyof P, Optional<P>>]: Value<P[K]> } & {
  [K in Optional<P>]?: Value<P[K]>;
};

const make = <T>(json: JsonObject, description?: string, more: JsonObject = {}): Schema<T> => ({
  json: { ...json, ...(description === undefined ? {} : { description }), ...more },
  optional: false,
});

export const string = (description?: string, more?: JsonObject) => make<string>({ type: "string" }, description, more);
export const integer = (description?: string, more?: JsonObject) => make<number>({ type: "integer" }, description, more);
export const number = (description?: string, more?: JsonObject) => make<number>({ type: "number" }, description, more);
export const boolean = (description?: string, more?: JsonObject) => make<boolean>({ type: "boolean" }, description, more);
export const oneOf = <const T extends string>(values: readonly T[], description?: string) =>
  make<T>({ enum: [...values] }, description);
export const list = <T>(items: Schema<T>, description?: string) => make<T[]>({ type: "array", items: items.json }, description);
/** A property that may be left out; `fallback` is told to the model as the default. */
export const optional = <T>(schema: Schema<T>, fallback?: Json): Schema<T | undefined> => ({
  json: fallback === undefined ? schema.json : { ...schema.json, default: fallback },
  optional: true,
});

/** The object schema of these properties; nothing else is allowed. */
export function objectOf(properties: Properties): JsonObject {
  const entries = Object.entries(properties);
  return {
    type: "object",
    properties: Object.fromEntries(entries.map(([name, schema]) => [name, schema.json])),
    required: entries.filter(([, schema]) => !schema.optional).map(([name]) => name),
    additionalProperties: false,
  };
}
