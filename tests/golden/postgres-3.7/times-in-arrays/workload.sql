SELECT fill();
