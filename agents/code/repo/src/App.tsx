import { useState } from "react";

import { Button } from "./components/Button";
import { Card } from "./components/Card";
import { TextField } from "./components/TextField";

export function App() {
  const [name, setName] = useState("");
  return (
    <Card title="Your order" footer={<Button label="Pay" onClick={() => setName("")} />}>
      <TextField label="Name" value={name} onChange={setName} />
      <Button label="Clear" variant="secondary" disabled={name === ""} onClick={() => setName("")} />
    </Card>
  );
}
