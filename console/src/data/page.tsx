import type { ComponentChildren } from "preact";
import type { Resource } from "../api/use";
import { Loaded, PageHead } from "../ui/basics";

/** A page of one thing: what is loaded, or a heading with why it cannot be. */
export function LoadedPage<T>({
	of,
	title,
	children,
	rows,
}: {
	of: Resource<T>;
	title: string;
	children: (data: T) => ComponentChildren;
	rows?: number;
}) {
	return (
		<>
			{of.data === undefined && <PageHead title={title} />}
			<Loaded of={of} rows={rows}>
				{children}
			</Loaded>
		</>
	);
}
