import { PageHead } from "../../ui/basics";

export default function Page() {
	return <PageHead title="" />;
}
