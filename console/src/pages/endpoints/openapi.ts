/** A schema of OpenAPI 3.0, as far as the documents of endpoints use it. */
export interface Schema {
	$ref?: string;
	type?: string;
	format?: string;
	description?: string;
	nullable?: boolean;
	enum?: unknown[];
	default?: unknown;
	example?: unknown;
	minimum?: number;
	maximum?: number;
	items?: Schema;
	properties?: Record<string, Schema>;
	required?: string[];
	additionalProperties?: boolean | Schema;
	allOf?: Schema[];
	anyOf?: Schema[];
	oneOf?: Schema[];
	"x-order"?: number;
}

interface Content {
	schema?: Schema;
	example?: unknown;
}

interface ResponseObject {
	$ref?: string;
	description?: string;
	content?: Record<string, Content>;
	headers?: Record<string, { $ref?: string; description?: string; schema?: Schema }>;
}

interface ParameterObject {
	$ref?: string;
	name?: string;
	in?: string;
	required?: boolean;
	description?: string;
	schema?: Schema;
}

interface OperationObject {
	operationId?: string;
	summary?: string;
	description?: string;
	deprecated?: boolean;
	parameters?: ParameterObject[];
	requestBody?: { content?: Record<string, Content> };
	responses?: Record<string, ResponseObject>;
}

/** A document of GET endpoints/:name/openapi.json. */
export interface OpenApi {
	openapi: string;
	info: { title: string; version: string; description?: string };
	servers?: { url: string }[];
	paths: Record<string, Record<string, OperationObject>>;
	components?: Record<string, Record<string, unknown>>;
}

/** One field of a body, a parameter or a part of a schema. */
export interface FieldRow {
	name: string;
	type: string;
	required: boolean;
	/** The default as JSON; empty for none. */
	fallback: string;
	description: string;
}

export interface ResponseRow {
	status: string;
	description: string;
	/** Each media type with the type of its content. */
	contents: { media: string; type: string; schema: string }[];
	headers: { name: string; description: string }[];
}

export interface Operation {
	id: string;
	method: string;
	path: string;
	summary: string;
	description: string;
	deprecated: boolean;
	parameters: (FieldRow & { place: string })[];
	body: FieldRow[];
	responses: ResponseRow[];
}

export interface NamedSchema {
	name: string;
	type: string;
	description: string;
	fields: FieldRow[];
}

/** What a reference such as #/components/schemas/Row names; undefined when it leads nowhere. */
export function resolve<T>(document: OpenApi, reference: string): T | undefined {
	if (!reference.startsWith("#/")) return undefined;
	let at: unknown = document;
	for (const part of reference.slice(2).split("/")) {
		const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
		if (typeof at !== "object" || at === null || !Object.hasOwn(at, name)) return undefined;
		at = (at as Record<string, unknown>)[name];
	}
	return at as T;
}

/** Follows references of a thing until there is none; gives up where they go round in a circle. */
export function followed<T extends { $ref?: string }>(document: OpenApi, thing: T | undefined): T | undefined {
	let at = thing;
	for (let steps = 0; at?.$ref && steps < 16; steps++) at = resolve<T>(document, at.$ref);
	return at?.$ref ? undefined : at;
}

const lastPart = (reference: string) => reference.slice(reference.lastIndexOf("/") + 1);

/** The type of a schema in words: "string (date-time) or null", "list of OrdersRow". */
export function typeOf(schema: Schema | undefined, depth = 0): string {
	if (!schema) return "any";
	const name = bareType(schema, depth);
	return schema.nullable ? `${name} or null` : name;
}

function bareType(schema: Schema, depth: number): string {
	if (schema.$ref) return lastPart(schema.$ref);
	if (depth > 8) return "…";
	if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" or ");
	const several = schema.anyOf ?? schema.oneOf;
	if (several) return [...new Set(several.map((s) => typeOf(s, depth + 1)))].join(" or ");
	if (schema.allOf) return schema.allOf.map((s) => typeOf(s, depth + 1)).join(" and ");
	if (schema.type === "array") return `list of ${typeOf(schema.items, depth + 1)}`;
	if (schema.type === "object" && typeof schema.additionalProperties === "object")
		return `map of ${typeOf(schema.additionalProperties, depth + 1)}`;
	return (schema.type ?? "any") + (schema.format ? ` (${schema.format})` : "");
}

/** The fields of an object, those of all its parts where it is made of several. */
export function fieldsOf(document: OpenApi, schema: Schema | undefined, depth = 0): FieldRow[] {
	const object = followed(document, schema);
	if (!object || depth > 8) return [];
	const own = Object.entries(object.properties ?? {}).map(([name, field]) =>
		row(document, name, field, object.required?.includes(name) ?? false),
	);
	const order = (name: string) => object.properties?.[name]?.["x-order"] ?? Number.MAX_SAFE_INTEGER;
	own.sort((a, b) => order(a.name) - order(b.name));
	return [...(object.allOf ?? []).flatMap((part) => fieldsOf(document, part, depth + 1)), ...own];
}

function row(document: OpenApi, name: string, field: Schema, required: boolean): FieldRow {
	const meant = followed(document, field);
	return {
		name,
		type: typeOf(field),
		required,
		fallback: meant && "default" in meant ? JSON.stringify(meant.default) : "",
		description: field.description ?? meant?.description ?? "",
	};
}

/** The operations of a document, in the order of their addresses. */
export function operationsOf(document: OpenApi): Operation[] {
	return Object.entries(document.paths).flatMap(([path, methods]) =>
		Object.entries(methods).map(([method, operation]) => ({
			id: operation.operationId ?? "",
			method: method.toUpperCase(),
			path,
			summary: operation.summary ?? "",
			description: operation.description ?? "",
			deprecated: operation.deprecated ?? false,
			parameters: (operation.parameters ?? []).map((parameter) => parameterRow(document, parameter)),
			body: fieldsOf(document, Object.values(operation.requestBody?.content ?? {})[0]?.schema),
			responses: Object.entries(operation.responses ?? {}).map(([status, response]) => responseRow(document, status, response)),
		})),
	);
}

function parameterRow(document: OpenApi, parameter: ParameterObject): FieldRow & { place: string } {
	const meant = followed(document, parameter) ?? {};
	return {
		...row(document, meant.name ?? "", meant.schema ?? {}, meant.required ?? false),
		description: meant.description ?? "",
		place: meant.in ?? "",
	};
}

function responseRow(document: OpenApi, status: string, response: ResponseObject): ResponseRow {
	const meant = followed(document, response) ?? {};
	return {
		status,
		description: meant.description ?? "",
		contents: Object.entries(meant.content ?? {}).map(([media, { schema }]) => ({
			media,
			type: typeOf(schema),
			schema: schema?.$ref ? lastPart(schema.$ref) : "",
		})),
		headers: Object.entries(meant.headers ?? {}).map(([name, header]) => ({
			name,
			description: followed(document, header)?.description ?? "",
		})),
	};
}

/** The schemas that a document names. */
export function schemasOf(document: OpenApi): NamedSchema[] {
	return Object.entries(document.components?.schemas ?? {}).map(([name, given]) => {
		const schema = given as Schema;
		return { name, type: typeOf(schema), description: schema.description ?? "", fields: fieldsOf(document, schema) };
	});
}

/** The schema of the body that runs take. */
export function runBody(document: OpenApi): Schema | undefined {
	const [operation] = Object.entries(document.paths).find(([path]) => path.endsWith("/run")) ?? [];
	const post = operation ? document.paths[operation]?.post : undefined;
	return followed(document, Object.values(post?.requestBody?.content ?? {})[0]?.schema);
}

/** The variables of an endpoint, by name, with the names of those that a run must give. */
export function variablesOf(document: OpenApi): { name: string; schema: Schema; required: boolean }[] {
	const variables = followed(document, runBody(document)?.properties?.variables);
	return Object.entries(variables?.properties ?? {}).map(([name, schema]) => ({
		name,
		schema: followed(document, schema) ?? schema,
		required: variables?.required?.includes(name) ?? false,
	}));
}

/** The formats that the endpoint has addresses for: "arrays", "objects", "csv", … */
export function formatsOf(document: OpenApi): string[] {
	const known = ["objects", "csv", "ndjson", "parquet", "arrow"];
	const paths = Object.keys(document.paths);
	return ["arrays", ...known.filter((format) => paths.some((path) => path.endsWith(`/run.${format}`)))];
}
